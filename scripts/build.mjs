// Makes dist/: the WASM modules (asc) and the bundled command line, proxy worker and published
// entry points (esbuild). `--if-needed` does nothing when no source is newer than the last build.
import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'

const root = join(import.meta.dirname, '..')
const stamp = join(root, 'dist', '.built')

const entries = {
  main: 'src/main.ts',
  'proxy-worker': 'src/proxy/worker.ts',
  core: 'src/core/index.ts',
  events: 'events/index.ts',
  replay: 'src/replay/index.ts',
  policy: 'src/policies/define.ts',
}

/** Is every source older than the last build? */
function isFresh() {
  if (!existsSync(stamp)) return false
  const built = statSync(stamp).mtimeMs
  const sources = [
    'src/**/*',
    'events/**/*',
    'proto/**/*',
    'assembly/**/*',
    'scripts/build.mjs',
    'package.json',
    'asconfig.json',
  ]
  return globSync(sources, { cwd: root }).every(
    (file) => statSync(join(root, file)).mtimeMs <= built,
  )
}

/** Compiles the AssemblyScript core; an old module must never survive a failed compile. */
function buildCore() {
  if (!existsSync(join(root, 'assembly', 'index.ts'))) return
  const fresh = join(root, 'build', 'core.wasm')
  rmSync(fresh, { force: true })
  const asc = join(root, 'node_modules', '.bin', 'asc')
  const run = spawnSync(asc, ['--config', 'asconfig.json', '--target', 'release'], {
    cwd: root,
    encoding: 'utf8',
  })
  if (run.status !== 0 || !existsSync(fresh)) {
    console.error(run.stdout, run.stderr)
    process.exit(run.status || 1)
  }
  // In one step: a process that starts meanwhile finds the old module or the new one, whole.
  renameSync(fresh, join(root, 'dist', 'core.wasm'))
  copyFileSync(join(root, 'assembly', 'core.abi.json'), join(root, 'dist', 'core.abi.json'))
}

/** Chunks carry a hash in their name, so those of earlier builds would pile up. */
function removeStale(outputs) {
  for (const file of globSync('dist/*.js{,.map}', { cwd: root })) {
    if (!outputs.has(file)) rmSync(join(root, file))
  }
}

async function bundle() {
  const present = Object.fromEntries(
    Object.entries(entries).filter(([, file]) => existsSync(join(root, file))),
  )
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: present,
    outdir: 'dist',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    packages: 'external',
    sourcemap: 'linked',
    logLevel: 'warning',
    metafile: true,
  })
  removeStale(new Set(Object.keys(metafile.outputs)))
}

if (!(process.argv.includes('--if-needed') && isFresh())) {
  mkdirSync(join(root, 'dist'), { recursive: true })
  const begun = new Date()
  buildCore()
  await bundle()
  writeFileSync(stamp, `${begun.toISOString()}\n`)
}
