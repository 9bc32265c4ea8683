/**
 * Makes the npm package @sluice/core, from packages/javascript, src/engines/core and the modules of dist/:
 *
 *     node scripts/packages/javascript.mjs FOLDER && npm install FOLDER/sluice-core-VERSION.tgz
 */
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { writeDeclarations } from '../declarations.mjs'
import { bundledFolders, coreParts, noticesFile, noticesOf, packageParts } from '../notices.mjs'
import { packFolder } from '../release/npm-package.mjs'
import { encodings, modules, readVocabulary, root, runScript, writeFiles } from './common.mjs'

const source = join(root, 'packages', 'javascript')
const dist = join(root, 'dist')

/** Sources of the core that the package replaces, because they use Node. */
const replaced = {
  'src/engines/core/load.ts': 'packages/javascript/src/modules.ts',
  'src/engines/core/built-files.ts': 'packages/javascript/src/vocabularies.ts',
  'src/ground/base/digest.ts': 'src/ground/base/digest-browser.ts',
}

/** `top` is the path from the built files to the folder of the package. */
const packageSources = (top, changes) => ({
  name: 'package-sources',
  setup(builder) {
    builder.onResolve({ filter: /^\.{1,2}\/.*\.ts$/ }, ({ path, resolveDir }) => {
      const file = relative(root, join(resolveDir, path))
      const other = { ...replaced, ...changes }[file]
      return other === undefined ? undefined : { path: join(root, other) }
    })
    builder.onResolve({ filter: /^embedded:/ }, ({ path, kind }) => {
      const name = path.slice('embedded:'.length)
      if (kind === 'dynamic-import') return { path: `${top}/${name}.js`, external: true }
      return { path: name, namespace: 'embedded' }
    })
    builder.onLoad({ filter: /.*/, namespace: 'embedded' }, ({ path }) => ({
      contents: readFileSync(join(dist, path)).toString('base64'),
      loader: 'text',
    }))
    builder.onResolve({ filter: /\.wasm$/ }, ({ path }) => ({
      path: `${top}/${path.slice(2)}`,
      external: true,
    }))
  },
})

/** Each part is a file, so that bundlers can leave out those that are not used. */
const parts = ['index', 'guard-fetch', 'guards', 'limits', 'masks', 'patterns', 'routes', 'tokens']

const bundle = (outdir, top, changes = {}) =>
  build({
    absWorkingDir: root,
    entryPoints: parts.map((name) => join(source, 'src', `${name}.ts`)),
    outdir,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'neutral',
    target: 'es2022',
    charset: 'utf8',
    mainFields: ['module', 'main'],
    conditions: ['browser'],
    inject: [join(source, 'src', 'bytes.ts')],
    plugins: [packageSources(top, changes)],
    // Comments have the paths of files, which must not depend on where the folder of packages really is.
    preserveSymlinks: true,
    logLevel: 'warning',
    metafile: true,
  })

/** Declarations of the package, and those of the core that they import. */
function writeTypes(folder) {
  const made = mkdtempSync(join(tmpdir(), 'sluice-types-'))
  try {
    writeDeclarations(source, made)
    const wanted = ['packages/javascript/src/index.d.ts']
    for (const name of wanted) {
      const text = readFileSync(join(made, name), 'utf8')
      mkdirSync(dirname(join(folder, 'types', name)), { recursive: true })
      writeFileSync(join(folder, 'types', name), text)
      for (const [, path] of text.matchAll(/from ['"](\.[^'"]+)\.[jt]s['"]/g)) {
        const next = join(dirname(name), `${path}.d.ts`)
        if (!wanted.includes(next)) wanted.push(next)
      }
    }
  } finally {
    rmSync(made, { recursive: true })
  }
}

/** Writes the package to a folder. Returns what it contains of others. */
async function writePackage(folder, version) {
  const { metafile } = await bundle(folder, '.')
  await bundle(join(folder, 'workerd'), '..', {
    'packages/javascript/src/embedded-modules.ts': 'packages/javascript/src/workerd-modules.ts',
  })
  const parts = [...packageParts(bundledFolders([metafile])), ...coreParts()]
  writeFileSync(join(folder, noticesFile), noticesOf(parts))
  for (const name of modules) copyFileSync(join(dist, name), join(folder, name))
  for (const name of encodings) {
    // Not every host can decompress Brotli.
    const packed = gzipSync(readVocabulary(name), { level: 9 }).toString('base64')
    writeFileSync(join(folder, `${name}.js`), `export default '${packed}'\n`)
  }
  writeTypes(folder)
  const manifest = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'))
  const { name, ...rest } = manifest
  writeFileSync(
    join(folder, 'package.json'),
    `${JSON.stringify({ name, version, ...rest }, null, 2)}\n`,
  )
  copyFileSync(join(source, 'README.md'), join(folder, 'README.md'))
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'))
  return parts
}

/**
 * Packs the package.
 * @param {{ version: string }} release
 * @returns {Promise<{ name: string, bytes: Buffer, parts: import('../notices.mjs').Part[] }>}
 */
export async function packJavaScript({ version }) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-javascript-'))
  try {
    const parts = await writePackage(folder, version)
    return { ...packFolder(folder), parts }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

await runScript(import.meta.filename, async (folder, version) =>
  writeFiles(folder, [await packJavaScript({ version })]),
)
