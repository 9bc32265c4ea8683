// The npm package: what runs, its types, and only the dependencies that remain outside the bundles.
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { builtFiles, importedPackages, lockedVersion, root } from './app-tree.mjs'
import { entriesOf } from './tar.mjs'

const readPackage = () => JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** The package.json of an installed Sluice: without tools and without the Node that development uses. */
export function publishedManifest(version) {
  const { scripts, devDependencies, optionalDependencies, files, dependencies, ...rest } =
    readPackage()
  const needed = new Set([...importedPackages(), ...typePackages()])
  return {
    ...rest,
    version,
    dependencies: Object.fromEntries([...needed].sort().map((name) => [name, lockedVersion(name)])),
  }
}

/** The packages whose types the published declarations use. */
function typePackages() {
  const names = builtFiles({ withTypes: true })
    .filter(({ name }) => name.endsWith('.d.ts'))
    .flatMap(({ body }) => [
      ...body.toString().matchAll(/(?:from|import\() ?['"]([^'"./][^'"]*)['"]/g),
    ])
    .map(([, from]) => from.match(/^(@[^/]+\/)?[^/]+/)[0])
  return names.filter((name) => !name.startsWith('node:'))
}

/**
 * Packs the package.
 * @returns {{ name: string, bytes: Buffer }}
 */
export function packNpm(version) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-npm-'))
  try {
    const manifest = publishedManifest(version)
    const entries = [
      ...builtFiles({ withTypes: true }),
      ...entriesOf(join(root, 'bin'), 'bin'),
      ...['LICENSE', 'README.md', 'assembly/core.abi.json', 'docs/embedding.md'].map((name) => ({
        name,
        mode: 0o644,
        body: readFileSync(join(root, name)),
      })),
      {
        name: 'package.json',
        mode: 0o644,
        body: `${JSON.stringify({ ...manifest, files: ['**'] }, null, 2)}\n`,
      },
    ]
    for (const { name, mode, body } of entries) {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), body, { mode })
    }
    return packFolder(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/**
 * Packs a folder with a package.json, which gets the tarball, too. Its files get modes that do not depend on the umask.
 * @returns {{ name: string, bytes: Buffer }}
 */
export function packFolder(folder) {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const file = join(entry.parentPath, entry.name)
    chmodSync(file, (statSync(file).mode & 0o100) === 0 ? 0o644 : 0o755)
  }
  const args = ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder]
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd: folder, encoding: 'utf8' })
  if (status !== 0) throw new Error(`npm pack: ${stderr}`)
  const name = stdout.trim()
  return { name, bytes: readFileSync(join(folder, name)) }
}
