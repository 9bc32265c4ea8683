// Makes dist/: the WASM modules (asc) and the bundled command line, proxy worker and published
// entry points (esbuild), and the vocabularies for token counts. `--if-needed` does nothing when no
// source is newer than the last build. `--to-run` leaves out what only packages need: the filter for
// Envoy and the declarations, which are a third of the work.
import { execFile } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { buildConsole } from './build-console.mjs'
import { buildVocabularies } from './build-vocabularies.mjs'
import { bundledPackages } from './bundled-packages.mjs'
import { writeDeclarations } from './declarations.mjs'
import {
  bundledFolders,
  componentOf,
  coreParts,
  importedNames,
  noticesFile,
  noticesOf,
  packageParts,
} from './notices.mjs'

const root = join(import.meta.dirname, '..')
const begun = new Date()
const isToRun = process.argv.includes('--to-run')
const stamp = join(root, 'dist', '.built')
/** Newer than every source after a build with `--to-run`. */
const runStamp = join(root, 'dist', '.built-to-run')
const filter = 'sluice-filter.wasm'

const entries = {
  main: 'src/main.ts',
  'password-thread': 'src/engines/auth/passwords/thread.ts',
  'replay-thread': 'src/tools/cli/replay/thread.ts',
  'console-thread': 'src/tools/cli/console/thread.ts',
  events: 'events/index.ts',
  replay: 'src/past/replay/index.ts',
  policy: 'src/gateway/policies/define.ts',
}

/** A thread shares no code with others, and one file of its own loads faster than a hundred shared ones. */
const threads = { 'proxy-worker': 'src/gateway/proxy/workers/worker.ts' }

/** Entry points that carry their dependencies: `sluice/core` and `sluice/messages` need no other package. */
const selfContained = {
  core: 'src/engines/core/index.ts',
  messages: 'src/engines/messages/index.ts',
}

/** Each WebAssembly module by the configuration that asc makes it with; what takes longest is first. */
const modules = {
  [filter]: 'config/asconfig.filter.json',
  'core-texts.wasm': 'config/asconfig.texts.json',
  'core.wasm': 'asconfig.json',
  'core-rate-shared.wasm': 'config/asconfig.rate-shared.json',
}

/** Is there such a product, and is every source older than it? */
function isNewer(product, sources) {
  if (!existsSync(product)) return false
  const built = statSync(product).mtimeMs
  return globSync(sources, { cwd: root }).every(
    (file) => statSync(join(root, file)).mtimeMs <= built,
  )
}

function isFresh() {
  const sources = [
    'src/**/*',
    'events/**/*',
    'console/**/*',
    'proto/**/*',
    'assembly/**/*',
    'scripts/build*.mjs',
    'scripts/declarations.mjs',
    'scripts/notices{.mjs,/*}',
    'package.json',
    '{,config/}asconfig*.json',
    'tsconfig*.json',
  ]
  return isNewer(stamp, sources) || (isToRun && isNewer(runStamp, sources))
}

/** The compiler takes longest of all, and its sources change least. */
function isModuleFresh(name) {
  const sources = ['assembly/**/*', '{,config/}asconfig*.json', 'package-lock.json']
  return isNewer(join(root, 'dist', name), sources)
}

/** Compiles a module of the core; an old one must never survive a failed compile. */
async function buildModule(name, config) {
  const fresh = join(root, 'build', name)
  rmSync(fresh, { force: true })
  const asc = join(root, 'node_modules', '.bin', 'asc')
  try {
    await promisify(execFile)(asc, ['--config', config, '--target', 'release'], { cwd: root })
    if (!existsSync(fresh)) throw new Error(`asc made no ${name}`)
  } catch (error) {
    console.error(error.stdout ?? '', error.stderr ?? error.message)
    process.exit(error.code || 1)
  }
  // In one step: a process that starts meanwhile finds the old module or the new one, whole.
  const made = join(root, 'dist', name)
  // Images fit one module alone, and are made again after it.
  if (name === 'core.wasm') {
    for (const image of globSync('dist/*.tokens.image', { cwd: root })) rmSync(join(root, image))
  }
  renameSync(fresh, made)
  // As old as what it was made from: a source that changed meanwhile is newer.
  utimesSync(made, begun, begun)
}

/** Compiles the modules that are older than their sources, as many at once as there are cores. */
async function buildModules() {
  const waiting = Object.entries(modules).filter(
    ([name]) => !(isToRun && name === filter) && !isModuleFresh(name),
  )
  const compiler = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      await buildModule(...next)
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, compiler))
}

/** Chunks carry a hash in their name, so those of earlier builds would pile up. */
function removeStale(outputs) {
  for (const file of globSync('dist/*.js{,.map}', { cwd: root })) {
    if (!outputs.has(file)) rmSync(join(root, file))
  }
}

/**
 * Of the Kubernetes client only the reading of configurations is used. Its generated API of a
 * thousand classes would cost every controller a second and 60 MB, so the bundle has the rest
 * without it.
 */
const kubeConfigOnly = {
  name: 'kube-config-only',
  setup(builder) {
    const folder = join(root, 'node_modules', '@kubernetes', 'client-node', 'dist')
    builder.onResolve({ filter: /^@kubernetes\/client-node$/ }, () => ({
      path: join(folder, 'config.js'),
    }))
    builder.onResolve({ filter: /^\.\.?\// }, ({ importer, path }) => {
      if (!importer.startsWith(folder)) return undefined
      const isUnused = path === './gen/index.js' || path === './middleware.js'
      return isUnused ? { path, namespace: 'kube-no-api' } : undefined
    })
    builder.onLoad({ filter: /.*/, namespace: 'kube-no-api' }, () => ({
      contents:
        'export class ServerConfiguration {}; export const createConfiguration = undefined; export const setHeaderMiddleware = undefined',
    }))
  },
}

const onlyBundledPackages = {
  name: 'only-bundled-packages',
  setup(builder) {
    builder.onResolve({ filter: /^[^./]/ }, ({ kind, path }) => {
      if (kind === 'entry-point') return undefined
      const isBundled = bundledPackages.some((name) => path === name || path.startsWith(`${name}/`))
      return isBundled ? undefined : { path, external: true }
    })
  },
}

/** Bundled CommonJS modules require modules of Node. */
const requireForBundled = `import { createRequire as $createRequire } from 'node:module'
const require = $createRequire(import.meta.url)`

const common = {
  absWorkingDir: root,
  outdir: 'dist',
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node22',
  sourcemap: 'linked',
  // V8 keeps the source text, at two bytes a character unless all of it is ASCII. Names stay, for stack traces.
  charset: 'ascii',
  minifyWhitespace: true,
  lineLimit: 160,
  logLevel: 'warning',
  metafile: true,
}

async function bundle() {
  const present = Object.fromEntries(
    Object.entries(entries).filter(([, file]) => existsSync(join(root, file))),
  )
  const withPackages = {
    ...common,
    banner: { js: requireForBundled },
    plugins: [kubeConfigOnly, onlyBundledPackages],
  }
  const parts = await Promise.all([
    build({ ...withPackages, entryPoints: present, splitting: true }),
    build({ ...withPackages, entryPoints: threads }),
    build({ ...common, entryPoints: selfContained }),
  ])
  removeStale(new Set(parts.flatMap(({ metafile }) => Object.keys(metafile.outputs))))
  rmSync(join(root, 'dist', '.compile-cache'), { recursive: true, force: true })
  return parts.map(({ metafile }) => metafile)
}

/** The licences of what dist/ contains, and a description of dist/ for releases. */
function describeContents(program, console) {
  const parts = [...packageParts(bundledFolders([...program, ...console])), ...coreParts()]
  writeFileSync(join(root, 'dist', noticesFile), noticesOf(parts))
  const components = parts.map(componentOf).sort((a, b) => (a.purl < b.purl ? -1 : 1))
  const contents = { imports: importedNames(program), components }
  writeFileSync(join(root, 'dist', '.contents.json'), `${JSON.stringify(contents, null, 2)}\n`)
}

/** The types of the published entry points that need nothing else. */
function declareTypes() {
  const folder = join(root, 'dist', 'types')
  rmSync(folder, { recursive: true, force: true })
  writeDeclarations('tsconfig.types.json', folder)
}

const isIfNeeded = process.argv.includes('--if-needed')
const isStale = !(isIfNeeded && isFresh())
const program = []
if (isStale) {
  if (isIfNeeded) console.error('building, about a minute')
  mkdirSync(join(root, 'dist'), { recursive: true })
  const [, bundled] = await Promise.all([buildModules(), bundle()])
  program.push(...bundled)
  if (!isToRun) declareTypes()
  // Processes read it once something asks for a model.
  copyFileSync(
    join(root, 'src/engines/messages/catalog/models.json'),
    join(root, 'dist/models.json'),
  )
}
// They have their own inputs, and know when they are older.
buildVocabularies()
if (isStale) {
  describeContents(program, await buildConsole())
  writeFileSync(isToRun ? runStamp : stamp, `${begun.toISOString()}\n`)
}
