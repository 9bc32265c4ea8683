// Makes dist/playground/: a static page with the module and the vocabularies beside it, for any file
// server. Vocabularies are gzip here, because that is what every browser can decompress by itself.
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { brotliDecompressSync, gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')
const folder = join(dist, 'playground')

/** Compressing takes a second; it is done again only for a new vocabulary. */
function recompress(name) {
  const source = join(dist, `${name}.tokens.br`)
  const made = join(folder, `${name}.tokens.gz`)
  if (existsSync(made) && statSync(made).mtimeMs > statSync(source).mtimeMs) return
  writeFileSync(made, gzipSync(brotliDecompressSync(readFileSync(source)), { level: 9 }))
}

/** Needs dist/core.wasm and dist/*.tokens.br. */
export async function buildPlayground() {
  mkdirSync(folder, { recursive: true })
  await build({
    absWorkingDir: root,
    entryPoints: ['playground/main.ts'],
    outdir: 'dist/playground',
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2024',
    sourcemap: 'linked',
    logLevel: 'warning',
  })
  for (const file of ['playground/index.html', 'playground/style.css', 'dist/core.wasm']) {
    copyFileSync(join(root, file), join(folder, basename(file)))
  }
  for (const name of ['o200k_base', 'cl100k_base']) recompress(name)
}
