// Runs requests in transformers.js and prints a line of JSON for each: node run_requests.mjs REQUESTS.json
//
// REQUESTS.json: {"package": path of node_modules/@huggingface/transformers, "models": folder of bundles,
//                 "requests": [{"model": folder in it, "call": one of CALLS, ...}]}
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';

const job = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const js = await import(pathToFileURL(join(job.package, 'dist/transformers.node.mjs')));
js.env.allowRemoteModels = false;
js.env.localModelPath = job.models;
const OPTIONS = { session_options: { intraOpNumThreads: 1, interOpNumThreads: 1 } };
const GREEDY = { do_sample: false, eos_token_id: null };

const tensor = (spec) =>
  new js.Tensor(
    spec.dtype,
    spec.dtype === 'int64' ? BigInt64Array.from(spec.data, BigInt) : Float32Array.from(spec.data),
    spec.dims,
  );
const tensors = (specs) => Object.fromEntries(Object.entries(specs).map(([name, spec]) => [name, tensor(spec)]));
const numbers = (value) => value.tolist().map((row) => row.map(Number));

async function generate(request) {
  const model = await js[request.auto].from_pretrained(request.model, OPTIONS);
  const inputs = tensors(request.inputs);
  for (const [name, dims] of Object.entries(request.masks ?? {})) inputs[name] = js.full(dims, true);
  const made = await model.generate({ ...inputs, max_new_tokens: request.max_new_tokens, ...GREEDY, ...request.options });
  await model.dispose();
  return numbers(made);
}

// Text, picture or sound in, what the pipeline makes of it out.
async function pipeline(request) {
  const run = await js.pipeline(request.task, request.model, OPTIONS);
  const made = await run(...request.arguments, request.options);
  await run.dispose();
  return made instanceof js.Tensor ? { dims: made.dims, data: Array.from(made.data) } : made;
}

async function sound(request) {
  const run = await js.pipeline(request.task, request.model, OPTIONS);
  const made = await run(Float32Array.from(request.samples), request.options);
  await run.dispose();
  return made;
}

const CALLS = { generate, pipeline, sound };

for (const request of job.requests) {
  let line;
  try {
    line = { result: await CALLS[request.call](request) };
  } catch (error) {
    line = { error: String(error) };
  }
  process.stdout.write(JSON.stringify({ name: request.name, ...line }) + '\n');
}
