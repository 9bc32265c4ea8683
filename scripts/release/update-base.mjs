// Writes base-packages.json with the present versions of the Debian packages that the images contain:
// `node scripts/release/update-base.mjs`. Needs gpgv and the archive keys of Debian.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { architectures } from './base-image.mjs'
import { fetchBytes } from './downloads.mjs'

const mirrors = ['http://deb.debian.org/debian', 'http://deb.debian.org/debian-security']
const suites = [
  { mirror: mirrors[0], suite: 'trixie' },
  { mirror: mirrors[0], suite: 'trixie-updates' },
  { mirror: mirrors[1], suite: 'trixie-security' },
]
const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg'

/** What Node links to, and what every program expects to find. */
const wanted = [
  'base-files',
  'ca-certificates',
  'gcc-14-base',
  'libatomic1',
  'libc6',
  'libgcc-s1',
  'libstdc++6',
  'netbase',
  'tzdata',
]

function pipe(command, args, input) {
  const { stdout, stderr, status, error } = spawnSync(command, args, { input, maxBuffer: 1 << 30 })
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(`${command}: ${stderr}`)
  return stdout
}

/** The signed list of packages of a suite; throws if a signature or a digest does not match. */
async function packagesOf({ mirror, suite }, architecture) {
  const base = `${mirror}/dists/${suite}`
  const release = await fetchBytes(`${base}/InRelease`)
  const signed = pipe('gpgv', ['--keyring', keyring, '--output', '-', '-'], release).toString()
  const index = `main/binary-${architecture}/Packages.xz`
  const digest = new RegExp(`^ ([0-9a-f]{64}) +\\d+ ${index}$`, 'm').exec(signed)?.[1]
  const bytes = await fetchBytes(`${base}/${index}`)
  if (createHash('sha256').update(bytes).digest('hex') !== digest)
    throw new Error(`${base}/${index} does not have the digest of InRelease`)
  return pipe('xz', ['-dc'], bytes)
    .toString()
    .split('\n\n')
    .map((text) =>
      Object.fromEntries([...text.matchAll(/^(\w+): (.*)$/gm)].map((m) => [m[1], m[2]])),
    )
    .filter(({ Package }) => wanted.includes(Package))
    .map((one) => ({
      name: one.Package,
      version: one.Version,
      path: one.Filename,
      sha256: one.SHA256,
    }))
}

/** Later suites hold updates of earlier ones. */
async function newestPackages(architecture) {
  const newest = new Map()
  for (const suite of suites) {
    for (const one of await packagesOf(suite, architecture)) {
      const before = newest.get(one.name)
      const isNewer =
        before === undefined ||
        spawnSync('dpkg', ['--compare-versions', one.version, 'gt', before.version]).status === 0
      if (isNewer) newest.set(one.name, one)
    }
  }
  const absent = wanted.filter((name) => !newest.has(name))
  if (absent.length > 0) throw new Error(`not in Debian for ${architecture}: ${absent.join(', ')}`)
  return [...newest.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

const packages = {}
for (const architecture of architectures)
  packages[architecture] = await newestPackages(architecture)
const file = join(import.meta.dirname, 'base-packages.json')
writeFileSync(file, `${JSON.stringify({ mirrors, packages }, null, 2)}\n`)
