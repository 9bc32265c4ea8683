// `npm run release -- --dry-run VERSION [--output FOLDER] [--sign-key FILE]`: makes every artifact of a release from the
// present commit: the npm packages, the Go module, the Python wheel, the Rust crate, the C library, images as OCI layouts,
// charts, completions, the manual page, checksums, SBOM, provenance and notes. It publishes nothing and needs no account;
// the workflow .github/workflows/release.yml publishes the same files. The same commit always gives the same bytes.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { componentOf } from './notices.mjs'
import { packC } from './packages/c.mjs'
import { packGo } from './packages/go.mjs'
import { packJavaScript } from './packages/javascript.mjs'
import { packPython } from './packages/python.mjs'
import { packRust } from './packages/rust.mjs'
import { appTree, root } from './release/app-tree.mjs'
import { architectures, fetchBase } from './release/base-image.mjs'
import { packChart } from './release/charts.mjs'
import { releaseNotes, shellDocuments } from './release/documents.mjs'
import { buildImages } from './release/images.mjs'
import { packNpm, publishedManifest } from './release/npm-package.mjs'
import { digestOf } from './release/oci-layout.mjs'
import { registry } from './release/registry.mjs'
import { signChecksums } from './release/sign.mjs'
import { krewManifest, packStandalone } from './release/standalone.mjs'
import { provenance, sbomOf } from './release/supply-chain.mjs'

const source = 'https://github.com/sluice-dev/sluice'
const usage = `usage: npm run release -- --dry-run VERSION [--output FOLDER] [--sign-key FILE]
       npm run release -- --fetch-only`

function fail(message) {
  console.error(`release: ${message}\n${usage}`)
  process.exit(2)
}

function git(...args) {
  const { status, stdout, stderr } = spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`)
  return stdout.trim()
}

function readArguments() {
  const options = {
    'dry-run': { type: 'boolean', default: false },
    'fetch-only': { type: 'boolean', default: false },
    output: { type: 'string' },
    'sign-key': { type: 'string' },
  }
  try {
    return parseArgs({ options, allowPositionals: true })
  } catch (error) {
    return fail(error.message)
  }
}

/** What all artifacts say about their origin. The time is that of the commit. */
function describeRelease(version) {
  const epoch = Number(process.env.SOURCE_DATE_EPOCH ?? git('log', '-1', '--format=%ct'))
  return {
    version,
    source,
    revision: process.env.GITHUB_SHA ?? git('rev-parse', 'HEAD'),
    created: new Date(epoch * 1000).toISOString().replace('.000Z', 'Z'),
    builder: process.env.GITHUB_WORKFLOW_REF ?? `${source}/blob/main/scripts/release.mjs`,
  }
}

/** Makes the artifacts, as names and contents. */
async function makeArtifacts(release) {
  const { version } = release
  const npm = packNpm(version)
  const tree = appTree(`${JSON.stringify(publishedManifest(version), null, 2)}\n`)
  const images = await buildImages(release, tree)
  const charts = await Promise.all(
    readdirSync(join(root, 'charts')).map((name) => packChart(name, version, images)),
  )
  const standalone = await packStandalone(version, tree)
  const { parts, ...javaScript } = await packJavaScript(release)
  const listed = new Set(tree.components.map(({ purl }) => purl))
  const components = [
    ...tree.components,
    ...parts.map(componentOf).filter(({ purl }) => !listed.has(purl)),
  ]
  const artifacts = [
    npm,
    ...standalone,
    { name: 'krew/sluice.yaml', bytes: krewManifest(release, standalone) },
    ...images.map(({ name, archive }) => ({
      name: `images/${name}-${version}.oci.tar`,
      bytes: archive,
    })),
    ...charts.flat(),
    ...packGo(release),
    javaScript,
    packPython(release),
    await packRust(release),
    await packC(release),
    ...shellDocuments(version),
    { name: 'sbom.cdx.json', bytes: toJson(sbomOf(tree.sbom, release, components, 'sluice')) },
    { name: 'release-notes.md', bytes: releaseNotes(version) },
    {
      name: 'images.json',
      bytes: toJson(
        images.map(({ name, digest }) => ({ image: `${registry}/${name}:${version}`, digest })),
      ),
    },
  ].map(({ name, bytes }) => ({ name, bytes: Buffer.from(bytes) }))
  const subjects = artifacts.map(({ name, bytes }) => ({ name, digest: digestOf(bytes) }))
  const statement = {
    name: 'provenance.intoto.json',
    bytes: Buffer.from(toJson(provenance(release, subjects))),
  }
  return [...artifacts, statement].sort((a, b) => (a.name < b.name ? -1 : 1))
}

const toJson = (value) => `${JSON.stringify(value, null, 2)}\n`

function write(folder, artifacts) {
  rmSync(folder, { recursive: true, force: true })
  const checksums = artifacts.map(
    ({ name, bytes }) => `${digestOf(bytes).replace('sha256:', '')}  ${name}\n`,
  )
  for (const { name, bytes } of [...artifacts, { name: 'SHA256SUMS', bytes: checksums.join('') }]) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), bytes)
  }
}

const { values, positionals } = readArguments()
const signKey = values['sign-key']
if (signKey !== undefined && !existsSync(signKey)) fail(`${signKey} does not exist`)
if (values['fetch-only']) {
  for (const architecture of architectures) await fetchBase(architecture)
} else {
  const [version, ...others] = positionals
  if (version === undefined || others.length > 0) fail('expected one VERSION')
  if (!/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(version)) fail(`not a semantic version: ${version}`)
  if (!values['dry-run']) {
    fail(
      'this command publishes nothing: add --dry-run. The workflow publishes when a tag is pushed',
    )
  }
  const build = spawnSync(process.execPath, ['scripts/build.mjs', '--if-needed'], {
    cwd: root,
    stdio: 'inherit',
  })
  if (build.status !== 0) process.exit(build.status ?? 1)
  const folder = values.output ?? join(root, 'dist', 'release', version)
  const artifacts = await makeArtifacts(describeRelease(version))
  write(folder, artifacts)
  if (signKey !== undefined) signChecksums(folder, signKey)
  for (const { name, bytes } of artifacts) {
    console.log(`${(bytes.length / 1e6).toFixed(1).padStart(7)} MB  ${name}`)
  }
  console.log(`release ${version}: ${folder}`)
}
