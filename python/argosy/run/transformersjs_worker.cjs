// Opens a bundle in transformers.js; the protocol is that of worker.py.
//
//     node transformersjs_worker.cjs FOLDER [DTYPE]
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const readline = require('node:readline');

const say = (line) => fs.writeSync(1, JSON.stringify(line) + '\n');
const oneLine = (error) => `${error.name}: ${String(error.message).split('\n')[0]}`.slice(0, 600);
// What libraries print is no answer.
for (const name of ['log', 'info', 'warn', 'debug']) console[name] = (...all) => console.error(...all);

/** The package of NODE_PATH, else of node_modules in the current folder or above it. */
function load() {
  const name = '@huggingface/transformers';
  const from = [process.cwd(), ...(process.env.NODE_PATH || '').split(path.delimiter).filter(Boolean)];
  return require(require.resolve(name, { paths: from }));
}

function readJson(file) {
  return fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : {};
}

class Session {
  constructor(library, folder, asked) {
    this.library = library;
    this.folder = folder;
    this.version = library.env.version;
    this.config = readJson(path.join(folder, 'config.json'));
    library.env.allowRemoteModels = false;
    library.env.localModelPath = path.dirname(folder) + path.sep;
    this.name = path.basename(folder);
    this.options = { local_files_only: true, device: 'cpu' };
    // The suffix of the graphs that are there; the library's default on the CPU is fp32.
    const dtype = (this.config['transformers.js_config'] || {}).dtype;
    if (asked || !dtype) this.options.dtype = asked || this.dtype();
  }

  dtype() {
    const graphs = fs.readdirSync(path.join(this.folder, 'onnx')).filter((each) => each.endsWith('.onnx'));
    for (const suffix of ['fp16', 'q4', 'q4f16', 'int8', 'uint8', 'bnb4']) {
      if (graphs.length && graphs.every((each) => each.endsWith(`_${suffix}.onnx`))) return suffix;
    }
    return graphs.length && graphs.every((each) => each.endsWith('_quantized.onnx')) ? 'q8' : 'fp32';
  }

  async open() {
    const kinds = [
      [/ForConditionalGeneration|ForCausalLM|LMHead|MTModel/, null],
    ];
    const architecture = (this.config.architectures || [''])[0];
    if (!kinds.some(([pattern]) => pattern.test(architecture))) {
      throw new Error(`${architecture || 'this model'} generates no text; open the bundle by pipeline() or its own class`);
    }
    const { library } = this;
    this.isMedia = !!(this.config.vision_config || this.config.audio_config);
    this.isSpeech = library.AutoModelForSpeechSeq2Seq.MODEL_CLASS_MAPPINGS.some((types) => types.has(this.config.model_type));
    const kind = this.isSpeech ? library.AutoModelForSpeechSeq2Seq
      : this.isMedia ? library.AutoModelForImageTextToText
      : this.config.is_encoder_decoder ? library.AutoModelForSeq2SeqLM : library.AutoModelForCausalLM;
    this.model = await kind.from_pretrained(this.name, this.options);
  }

  async tokenizer() {
    this._tokenizer ??= await this.library.AutoTokenizer.from_pretrained(this.name, { local_files_only: true });
    return this._tokenizer;
  }

  async processor() {
    this._processor ??= await this.library.AutoProcessor.from_pretrained(this.name, { local_files_only: true });
    return this._processor;
  }

  ends() {
    const found = this.model.generation_config?.eos_token_id ?? this.config.eos_token_id ?? [];
    return new Set([found].flat().map(Number));
  }

  upToEnd(tokens) {
    const ends = this.ends();
    const at = tokens.findIndex((token) => ends.has(token));
    return at < 0 ? tokens : tokens.slice(0, at + 1);
  }

  tensor(rows) {
    const { Tensor } = this.library;
    return new Tensor('int64', BigInt64Array.from(rows.flat().map(BigInt)), [rows.length, rows[0].length]);
  }

  async encode(texts) {
    const tokenizer = await this.tokenizer();
    return texts.map((text) => Array.from(tokenizer.encode(text), Number));
  }

  async generate(inputs, count, skipped, streamer, sampling) {
    let options = { do_sample: false };
    if (sampling) {
      const { temperature, top_k, seed } = sampling;
      if (!this.library.random?.seed) throw new Error(`transformers.js ${this.version} takes no seed; a newer one does`);
      this.library.random.seed(seed);
      options = { do_sample: true, temperature, top_k };
    }
    const made = await this.model.generate({ ...inputs, ...options, num_beams: 1, max_new_tokens: count, streamer });
    return made.tolist().map((row) => this.upToEnd(row.map(Number).slice(skipped)));
  }

  async ids(rows, count) {
    const longest = Math.max(...rows.map((row) => row.length));
    const pad = this.model.generation_config?.pad_token_id ?? this.config.pad_token_id ?? 0;
    const filled = (row, value, each) => {
      const padding = Array(longest - row.length).fill(value);
      return this.config.is_encoder_decoder ? [...each, ...padding] : [...padding, ...each];
    };
    const inputs = {
      input_ids: this.tensor(rows.map((row) => filled(row, pad, row))),
      attention_mask: this.tensor(rows.map((row) => filled(row, 0, row.map(() => 1)))),
    };
    return this.generate(inputs, count, this.config.is_encoder_decoder ? 1 : longest);
  }

  async text(request, onPiece) {
    const { library } = this;
    const tokenizer = await this.tokenizer();
    let { text } = request;
    const content = request.images?.length
      ? [...request.images.map(() => ({ type: 'image' })), { type: 'text', text }] : text;
    if (request.chat && !this.isSpeech) {
      const system = request.system ? [{ role: 'system', content: request.system }] : [];
      const messages = [...system, { role: 'user', content }];
      text = tokenizer.apply_chat_template(messages, { tokenize: false, add_generation_prompt: true });
    }
    const streamer = new library.TextStreamer(tokenizer, {
      skip_prompt: !this.config.is_encoder_decoder, skip_special_tokens: true, callback_function: onPiece });
    let inputs;
    if (request.audios?.length) {
      const processor = await this.processor();
      inputs = await processor(await readAudio(request.audios[0]));
      if (!this.isSpeech) throw new Error('audio is run for speech models only');
    } else if (request.images?.length) {
      const processor = await this.processor();
      const images = await Promise.all(request.images.map((file) => library.RawImage.read(file)));
      inputs = await processor(images, text);
      if (!inputs.input_ids) inputs = await processor(text, images);
    } else {
      inputs = tokenizer(text, { add_special_tokens: !request.chat });
    }
    const length = inputs.input_ids ? inputs.input_ids.dims.at(-1) : 0;
    const skipped = this.config.is_encoder_decoder ? 1 : length;
    const tokens = await this.generate(inputs, request.max_new_tokens, skipped, streamer, request.sampling);
    return { tokens, text: tokenizer.decode(tokens[0], { skip_special_tokens: true }), prompt_tokens: length };
  }
}

/** Samples of a .wav file: 16-bit or float, 16 kHz; channels are averaged. */
async function readAudio(file) {
  const bytes = fs.readFileSync(file);
  if (bytes.toString('latin1', 0, 4) !== 'RIFF') throw new Error(`${file} is no .wav file, which is all that is read here`);
  let at = 12, format = null;
  while (at + 8 <= bytes.length) {
    const kind = bytes.toString('latin1', at, at + 4), size = bytes.readUInt32LE(at + 4);
    if (kind === 'fmt ') {
      format = { tag: bytes.readUInt16LE(at + 8), channels: bytes.readUInt16LE(at + 10),
        rate: bytes.readUInt32LE(at + 12), bits: bytes.readUInt16LE(at + 22) };
    }
    if (kind === 'data' && format) {
      if (format.rate !== 16000) throw new Error(`${file} has ${format.rate} samples a second, 16000 are needed`);
      const isFloat = format.tag === 3 && format.bits === 32;
      if (!isFloat && format.bits !== 16) throw new Error(`${file} has samples of ${format.bits} bits, 16 are needed`);
      const width = format.bits / 8 * format.channels;
      const count = Math.floor(Math.min(size, bytes.length - at - 8) / width);
      const samples = new Float32Array(count);
      for (let i = 0; i < count; ++i) {
        for (let c = 0; c < format.channels; ++c) {
          const place = at + 8 + i * width + c * format.bits / 8;
          samples[i] += (isFloat ? bytes.readFloatLE(place) : bytes.readInt16LE(place) / 32768) / format.channels;
        }
      }
      return samples;
    }
    at += 8 + size + size % 2;
  }
  throw new Error(`${file} has no samples`);
}

async function main(folder, variant) {
  const start = performance.now();
  let library;
  try {
    library = load();
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error;
    say({ missing: 'node finds no @huggingface/transformers' });
    return 1;
  }
  const session = new Session(library, folder, variant);
  await session.open();
  say({ version: session.version, seconds: (performance.now() - start) / 1000 });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    try {
      const request = JSON.parse(line);
      if (request.encode) {
        say({ ids: await session.encode(request.encode) });
        continue;
      }
      const begin = performance.now();
      const onPiece = request.stream ? (piece) => say({ piece }) : () => {};
      const made = request.ids ? { tokens: await session.ids(request.ids, request.max_new_tokens) }
        : await session.text(request, onPiece);
      say({ ...made, seconds: (performance.now() - begin) / 1000 });
    } catch (error) {
      say({ error: oneLine(error) });
    }
  }
  return 0;
}

main(process.argv[2], process.argv[3]).then((code) => { process.exitCode = code; }, (error) => {
  say({ error: oneLine(error) });
  process.exitCode = 1;
});
