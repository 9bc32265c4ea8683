// Makes dist/*.tokens.br, the vocabularies that core.wasm loads: the ranks inside the pinned `tiktoken`
// package, checked against the digest of the file that the encoding's author publishes, as pairs of
// merged tokens (the format stands in assembly/tokens/load.ts), compressed with brotli; and
// dist/*.tokens.image, the tables that core.wasm makes of them (assembly/tokens/image.ts). Skips what is
// newer than its inputs.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib'

const root = join(import.meta.dirname, '..')
const require = createRequire(import.meta.url)
const ranksOf = (name) => require.resolve(`tiktoken/encoders/${name}.json`)

/** SHA-256 of NAME.tiktoken as OpenAI publishes it: a line for each rank, base64 and number. */
const vocabularies = [
  {
    name: 'o200k_base',
    pattern: 1,
    digest: '446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d',
  },
  {
    name: 'cl100k_base',
    pattern: 2,
    digest: '223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7',
  },
]

/** Tokens by rank, in base64. */
function readRanks(name) {
  const tokens = []
  const { bpe_ranks } = JSON.parse(readFileSync(ranksOf(name), 'utf8'))
  for (const line of bpe_ranks.split('\n')) {
    const [, first, ...row] = line.split(' ')
    for (const [i, token] of row.entries()) tokens[Number(first) + i] = token
  }
  return tokens
}

/** The two tokens that a token is the merge of: what is left of its bytes by all earlier merges. */
function splitToken(token, id, ids) {
  const parts = [...token]
  while (parts.length > 2) {
    let least = id
    let at = -1
    for (let i = 0; i + 1 < parts.length; i++) {
      const rank = ids.get(parts[i] + parts[i + 1])
      if (rank === undefined || rank >= least) continue
      least = rank
      at = i
    }
    if (at < 0) throw new Error(`token ${id} is not the merge of two`)
    parts.splice(at, 2, parts[at] + parts[at + 1])
  }
  return parts.map((part) => ids.get(part))
}

/** The file of a vocabulary; see assembly/tokens/load.ts. */
function encode(pattern, base64) {
  const tokens = base64.map((token) => Buffer.from(token, 'base64').toString('latin1'))
  const ids = new Map(tokens.map((token, id) => [token, id]))
  const later = tokens.length - 256
  const file = Buffer.alloc(272 + 6 * later)
  file.write('SLTK', 'latin1')
  for (const [i, word] of [1, pattern, tokens.length].entries()) file.writeUInt32LE(word, 4 + 4 * i)
  for (let id = 0; id < 256; id++) {
    if (tokens[id].length !== 1) throw new Error(`token ${id} is not one byte`)
    file[16 + id] = tokens[id].charCodeAt(0)
  }
  for (let i = 0; i < later; i++) {
    for (const [side, part] of splitToken(tokens[256 + i], 256 + i, ids).entries()) {
      for (let plane = 0; plane < 3; plane++) {
        file[272 + (side * 3 + plane) * later + i] = part >> (8 * plane)
      }
    }
  }
  return file
}

function compress(file) {
  const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_LGWIN, BROTLI_PARAM_SIZE_HINT } = constants
  const params = {
    [BROTLI_PARAM_QUALITY]: 11,
    [BROTLI_PARAM_LGWIN]: 24,
    [BROTLI_PARAM_SIZE_HINT]: file.length,
  }
  return brotliCompressSync(file, { params })
}

/** Is the file there, and newer than its inputs? */
function isFresh(target, inputs) {
  const newest = Math.max(...inputs.map((path) => statSync(path).mtimeMs))
  return existsSync(target) && statSync(target).mtimeMs > newest
}

/** In one step: a process that starts meanwhile finds the old file or the new one, whole. */
function replaceFile(target, content) {
  writeFileSync(`${target}.new`, content)
  renameSync(`${target}.new`, target)
}

/** The tables of a vocabulary as core.wasm has them in its memory. */
function makeImage(module, file) {
  const { exports: core } = new WebAssembly.Instance(new WebAssembly.Module(module), {})
  const address = core.block_new(file.length + 16)
  Buffer.from(core.memory.buffer).set(file, address)
  const handle = core.tokens_load(address, file.length)
  if (handle < 0) throw new Error(`core.wasm refuses a vocabulary with code ${handle}`)
  const image = core.tokens_image(handle)
  const [, , size] = new Uint32Array(core.memory.buffer, image, 3)
  return new Uint8Array(core.memory.buffer, image, size)
}

/** Makes the images that are older than core.wasm or their vocabularies. */
function buildImages() {
  const module = join(root, 'dist', 'core.wasm')
  for (const { name } of vocabularies) {
    const target = join(root, 'dist', `${name}.tokens.image`)
    const source = join(root, 'dist', `${name}.tokens.br`)
    if (isFresh(target, [module, source, import.meta.filename])) continue
    const file = brotliDecompressSync(readFileSync(source))
    replaceFile(target, makeImage(readFileSync(module), file))
  }
}

/** Makes those that are missing or older than their ranks or this script. Needs dist/core.wasm. */
export function buildVocabularies() {
  for (const { name, pattern, digest } of vocabularies) {
    const target = join(root, 'dist', `${name}.tokens.br`)
    if (isFresh(target, [ranksOf(name), import.meta.filename])) continue
    const ranks = readRanks(name)
    const published = ranks.map((token, id) => `${token} ${id}\n`).join('')
    const found = createHash('sha256').update(published).digest('hex')
    if (found !== digest)
      throw new Error(`the ranks of ${name} have digest ${found}, not ${digest}`)
    mkdirSync(dirname(target), { recursive: true })
    replaceFile(target, compress(encode(pattern, ranks)))
  }
  buildImages()
}

if (process.argv[1] === import.meta.filename) buildVocabularies()
