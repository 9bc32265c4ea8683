// Makes the file tree of the images: what was built, the packages that it needs as the lockfile has
// them, and an SBOM of those. `node scripts/image/assemble.mjs FOLDER`, after npm ci and npm run build.
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bundledPackages } from '../bundled-packages.mjs'

const root = join(import.meta.dirname, '..', '..')
const target = process.argv[2]
if (target === undefined || !existsSync(join(root, 'dist', 'main.js'))) {
  console.error('usage: assemble.mjs FOLDER, after npm run build')
  process.exit(2)
}

/** Source maps are for developers, types and the site for readers. */
const isShipped = (path) =>
  !path.endsWith('.map') && !/\/dist\/(types|site|\.built|\.compile-cache)/.test(path)

const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))

/** Packages that the bundles import or contain. */
function importedPackages() {
  const names = new Set(bundledPackages)
  for (const file of readdirSync(join(root, 'dist')).filter((name) => name.endsWith('.js'))) {
    const text = readFileSync(join(root, 'dist', file), 'utf8')
    for (const [, from] of text.matchAll(/^(?:import|export|\})[^'"\n]*"([^"\n]+)";?$/gm))
      names.add(from)
    for (const [, from] of text.matchAll(/\bimport\("([^"\n]+)"\)/g)) names.add(from)
  }
  return [...names]
    .filter((name) => !/^(\.|node:)/.test(name))
    .map((name) => name.match(/^(@[^/]+\/)?[^/]+/)[0])
}

/** The folder in which a package finds another, as Node looks for it. */
function folderOf(name, from) {
  for (let place = from; ; place = place.replace(/(^|\/)node_modules\/(@[^/]+\/)?[^/]+$/, '')) {
    const folder = `${place}${place === '' ? '' : '/'}node_modules/${name}`
    if (packages[folder] !== undefined) return folder
    if (place === '') return undefined
  }
}

/** Folders of the packages that are imported, and of all that those need, by the lockfile. */
function packageFolders() {
  const folders = new Set()
  const visit = (name, from, isOptional) => {
    const folder = folderOf(name, from)
    if (folder === undefined && !isOptional) throw new Error(`${name} is not in the lockfile`)
    if (folder === undefined || folders.has(folder)) return
    folders.add(folder)
    const { dependencies = {}, peerDependencies = {} } = packages[folder]
    for (const needed of Object.keys(dependencies)) visit(needed, folder, false)
    for (const needed of Object.keys(peerDependencies)) visit(needed, folder, true)
  }
  for (const name of importedPackages()) visit(name, '', false)
  return [...folders].filter((folder) => !folder.includes('@types/')).sort()
}

/** What `npm sbom` says of the whole project, narrowed to what the image has. */
function sbomOf(folders) {
  // Without --omit=dev: npm would leave out what development needs as well.
  const args = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only']
  const output = execFileSync('npm', args, { cwd: root, encoding: 'utf8', maxBuffer: 64 << 20 })
  const sbom = JSON.parse(output)
  const shipped = new Set(
    folders.map((folder) => `${folder.split('node_modules/').at(-1)}@${packages[folder].version}`),
  )
  const isShippedRef = (ref) => shipped.has(ref) || ref === sbom.metadata.component['bom-ref']
  return {
    ...sbom,
    components: sbom.components.filter((one) => isShippedRef(one['bom-ref'])),
    dependencies: sbom.dependencies
      .filter(({ ref }) => isShippedRef(ref))
      .map((one) => ({ ...one, dependsOn: one.dependsOn.filter(isShippedRef) })),
  }
}

mkdirSync(target, { recursive: true })
cpSync(join(root, 'dist'), join(target, 'dist'), { recursive: true, filter: isShipped })
for (const file of ['package.json', 'LICENSE']) cpSync(join(root, file), join(target, file))
const folders = packageFolders()
for (const folder of folders) {
  cpSync(join(root, folder), join(target, folder), {
    recursive: true,
    // A package within a package is a folder of the lockfile itself, if it is needed.
    filter: (path) => !path.slice(root.length + folder.length + 1).includes('/node_modules'),
  })
}
writeFileSync(join(target, 'sbom.cdx.json'), `${JSON.stringify(sbomOf(folders), null, 2)}\n`)
