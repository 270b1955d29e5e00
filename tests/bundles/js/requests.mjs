// What tests ask of transformers.js, in Node (run_requests.mjs) and in a browser (requests_page.html).
const GREEDY = { do_sample: false, eos_token_id: null };

// One line for each request, by `say`: its name, and the result or the error. `js`: the package, set up to find the models.
export async function answer(js, requests, options, say) {
  const tensor = (spec) =>
    new js.Tensor(
      spec.dtype,
      spec.dtype === 'int64' ? BigInt64Array.from(spec.data, BigInt) : Float32Array.from(spec.data),
      spec.dims,
    );
  const tensors = (specs) => Object.fromEntries(Object.entries(specs).map(([name, spec]) => [name, tensor(spec)]));
  const numbers = (value) => value.tolist().map((row) => row.map(Number));

  async function generate(request) {
    const model = await js[request.auto].from_pretrained(request.model, options);
    const inputs = tensors(request.inputs);
    for (const [name, dims] of Object.entries(request.masks ?? {})) inputs[name] = js.full(dims, true);
    const made = await model.generate({ ...inputs, max_new_tokens: request.max_new_tokens, ...GREEDY, ...request.options });
    await model.dispose();
    return numbers(made);
  }

  // Text, picture or sound in, what the pipeline makes of it out.
  async function pipeline(request) {
    const run = await js.pipeline(request.task, request.model, options);
    const made = await run(...request.arguments, request.options);
    await run.dispose();
    return made instanceof js.Tensor ? { dims: made.dims, data: Array.from(made.data) } : made;
  }

  async function sound(request) {
    const run = await js.pipeline(request.task, request.model, options);
    const made = await run(Float32Array.from(request.samples), request.options);
    await run.dispose();
    return made;
  }

  const CALLS = { generate, pipeline, sound };
  for (const request of requests) {
    let line;
    try {
      line = { result: await CALLS[request.call](request) };
    } catch (error) {
      line = { error: String(error) };
    }
    say({ name: request.name, ...line });
  }
}
