// Opens bundles and generates a few tokens: a JSON list of [folder, class] on stdin, what went wrong as JSON lines on stdout.
// NODE_MODULES names the folder that has @huggingface/transformers.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const entry = path.join(process.env.NODE_MODULES, '@huggingface/transformers/dist/transformers.node.mjs');
const transformers = await import(pathToFileURL(entry));
transformers.env.allowRemoteModels = false;
transformers.env.localModelPath = '/';
for (const level of ['log', 'warn', 'error']) console[level] = () => {};

// A file that is not there may leave a promise that nobody keeps, and another that nobody looks at.
let refuse = null;
process.on('unhandledRejection', (error) => refuse?.(error));

async function run(folder, name) {
    const model = await transformers[name].from_pretrained(folder, { dtype: 'fp32' });
    const tensor = (value) => new transformers.Tensor('int64', BigInt64Array.from([value, value, value]), [1, 3]);
    await model.generate({ input_ids: tensor(3n), attention_mask: tensor(1n), max_new_tokens: 3 });
}

const alive = setInterval(() => {}, 1000);
for (const [folder, name] of JSON.parse(fs.readFileSync(0, 'utf8'))) {
    const refused = new Promise((_, reject) => (refuse = reject));
    let complaint = '';
    try {
        await Promise.race([run(folder, name), refused]);
    } catch (error) {
        complaint = String(error) || 'error';
    }
    refuse = null;
    process.stdout.write(JSON.stringify(complaint) + '\n');
}
clearInterval(alive);
process.exit(0);
