// What an installed Sluice consists of: the built files, and the packages that these import.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bundledPackages } from '../bundled-packages.mjs'
import { entriesOf } from './tar.mjs'

export const root = join(import.meta.dirname, '..', '..')

/** Leaves out source maps, the site and the files that the build keeps for itself. */
const isShipped = (name) =>
  !/\.map$|^dist\/(site|release|\.built|\.contents|\.compile-cache)/.test(name)
const isDeclaration = (name) => name.startsWith('dist/types/')

/** The built files, with type declarations for the npm package. */
export function builtFiles({ withTypes }) {
  if (!existsSync(join(root, 'dist', 'main.js'))) throw new Error('run npm run build first')
  return entriesOf(join(root, 'dist'), 'dist').filter(
    ({ name }) => isShipped(name) && (withTypes || !isDeclaration(name)),
  )
}

const readLock = () => JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages

/** What the build says of dist/: the packages that it imports, and the components that it contains. */
const readContents = () => JSON.parse(readFileSync(join(root, 'dist', '.contents.json'), 'utf8'))

/** The packages that the built files import when they run, by name. */
export const importedPackages = () => readContents().imports

/** The folder in which a package finds another, as Node looks for it. */
function folderOf(packages, name, from) {
  for (let place = from; ; place = place.replace(/(^|\/)node_modules\/(@[^/]+\/)?[^/]+$/, '')) {
    const folder = `${place}${place === '' ? '' : '/'}node_modules/${name}`
    if (packages[folder] !== undefined) return folder
    if (place === '') return undefined
  }
}

/** Folders of the packages that are imported or bundled, and of all that those need, by the lockfile. */
function packageFolders(packages) {
  const folders = new Set()
  const visit = (name, from, isOptional) => {
    const folder = folderOf(packages, name, from)
    if (folder === undefined && !isOptional) throw new Error(`${name} is not in the lockfile`)
    if (folder === undefined || folders.has(folder)) return
    folders.add(folder)
    const { dependencies = {}, peerDependencies = {} } = packages[folder]
    for (const needed of Object.keys(dependencies)) visit(needed, folder, false)
    for (const needed of Object.keys(peerDependencies)) visit(needed, folder, true)
  }
  for (const name of [...importedPackages(), ...bundledPackages]) visit(name, '', false)
  return [...folders].filter((folder) => !folder.includes('@types/')).sort()
}

/** The version of a package at the top of the lockfile. */
export const lockedVersion = (name) => readLock()[`node_modules/${name}`].version

/**
 * The application as the images hold it below `app/`, with the lists for an SBOM: of its packages, and of what
 * the built files contain besides these.
 * @param {string} manifest the text of package.json
 */
export function appTree(manifest) {
  const packages = readLock()
  const folders = packageFolders(packages)
  const file = (name, body) => ({ name, type: 'file', mode: 0o644, body: Buffer.from(body) })
  const entries = [
    ...builtFiles({ withTypes: false }),
    file('package.json', manifest),
    file('LICENSE', readFileSync(join(root, 'LICENSE'))),
    ...folders.flatMap((folder) =>
      // A package within a package is a folder of the lockfile itself, if it is needed.
      entriesOf(join(root, folder), folder).filter(
        ({ name }) => !name.slice(folder.length).includes('/node_modules/'),
      ),
    ),
  ]
  const shipped = new Set(
    folders.map((folder) => `${folder.split('node_modules/').at(-1)}@${packages[folder].version}`),
  )
  const sbom = npmSbom(shipped)
  const listed = new Set(sbom.components.map(({ purl }) => purl))
  return {
    entries: entries.map((entry) => ({ ...entry, name: `app/${entry.name}` })),
    sbom,
    components: readContents().components.filter(({ purl }) => !listed.has(purl)),
  }
}

/** The part of `npm sbom` that covers these packages. */
function npmSbom(shipped) {
  // Without --omit=dev: npm would also leave out packages that development needs as well.
  const args = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only']
  const output = execFileSync('npm', args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 << 20,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const sbom = JSON.parse(output)
  const isRoot = (ref) => ref === sbom.metadata.component['bom-ref']
  const isIncluded = (ref) => shipped.has(ref) || isRoot(ref)
  return {
    ...sbom,
    components: sbom.components.filter((one) => isIncluded(one['bom-ref'])),
    dependencies: sbom.dependencies
      .filter(({ ref }) => isIncluded(ref))
      .map((one) => ({ ...one, dependsOn: one.dependsOn.filter(isIncluded) })),
  }
}
