// Builds dist/console/, the static page of the console, which a process or any file server can serve. The
// folder also has the WebAssembly module and the vocabularies, in gzip, which every browser can decompress.
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { brotliDecompressSync, gzipSync } from 'node:zlib'
import { bundleForBrowsers } from './browser-bundle.mjs'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')
const folder = join(dist, 'console')

/** Compressing takes a second; it is done again only for a new vocabulary. */
function recompress(name) {
  const source = join(dist, `${name}.tokens.br`)
  const made = join(folder, `${name}.tokens.gz`)
  if (existsSync(made) && statSync(made).mtimeMs > statSync(source).mtimeMs) return
  writeFileSync(made, gzipSync(brotliDecompressSync(readFileSync(source)), { level: 9 }))
}

/** Chunks carry a hash in their name, so those of earlier builds would pile up. */
function removeStale(outputs) {
  for (const file of globSync('dist/console/*.js{,.map}', { cwd: root })) {
    if (!outputs.has(file)) rmSync(join(root, file))
  }
}

/**
 * Needs dist/core.wasm and dist/*.tokens.br.
 * @returns {Promise<object[]>} the metafiles of esbuild
 */
export async function buildConsole() {
  mkdirSync(folder, { recursive: true })
  const common = {
    outdir: 'dist/console',
    minify: true,
    splitting: true,
    sourcemap: 'linked',
    chunkNames: 'chunk-[hash]',
    jsx: 'automatic',
    jsxImportSource: 'preact',
  }
  // Page and workers share no chunk: a worker has a content security policy of its own.
  const parts = await Promise.all([
    bundleForBrowsers({
      ...common,
      inject: [],
      entryPoints: ['console/main.tsx', 'console/style.css'],
    }),
    bundleForBrowsers({
      ...common,
      chunkNames: 'chunk-[hash]-worker',
      entryNames: '[name]',
      entryPoints: ['console/worker/fold-worker.ts', 'console/views/playground/core-worker.ts'],
    }),
  ])
  removeStale(new Set(parts.flatMap(({ metafile }) => Object.keys(metafile.outputs))))
  for (const file of ['console/index.html', 'console/icon.svg', 'dist/core.wasm']) {
    copyFileSync(join(root, file), join(folder, basename(file)))
  }
  for (const name of ['o200k_base', 'cl100k_base']) recompress(name)
  return parts.map(({ metafile }) => metafile)
}
