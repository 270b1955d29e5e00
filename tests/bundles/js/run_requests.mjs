// Runs requests in transformers.js and prints a line of JSON for each: node run_requests.mjs REQUESTS.json
//
// REQUESTS.json: {"package": path of node_modules/@huggingface/transformers, "models": folder of bundles,
//                 "requests": [{"model": folder in it, "call": as requests.mjs has them, ...}]}
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { answer } from './requests.mjs';

const job = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const js = await import(pathToFileURL(join(job.package, 'dist/transformers.node.mjs')));
js.env.allowRemoteModels = false;
js.env.localModelPath = job.models;
const options = { session_options: { intraOpNumThreads: 1, interOpNumThreads: 1 } };
await answer(js, job.requests, options, (line) => process.stdout.write(JSON.stringify(line) + '\n'));
