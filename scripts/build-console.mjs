// Makes dist/console/: a static page for the console of a process, and for any file server.
import { copyFileSync, mkdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { build } from 'esbuild'

const root = join(import.meta.dirname, '..')
const folder = join(root, 'dist', 'console')

export async function buildConsole() {
  mkdirSync(folder, { recursive: true })
  await build({
    absWorkingDir: root,
    entryPoints: ['console/main.ts'],
    outdir: 'dist/console',
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2024',
    sourcemap: 'linked',
    logLevel: 'warning',
  })
  for (const file of ['console/index.html', 'console/style.css']) {
    copyFileSync(join(root, file), join(folder, basename(file)))
  }
}
