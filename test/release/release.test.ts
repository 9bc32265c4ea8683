/** A release as a user gets it: what is downloaded, installed and started. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { freePort } from '../support/gateway.ts'
import { send } from '../support/http-client.ts'
import { describeWithParts, partPath } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'
import { packagesIn, withoutQualifiers } from './image-packages.ts'
import {
  addMountPoints,
  canEnter,
  type Descriptor,
  type ImageConfig,
  Layout,
  spawnInside,
  unpack,
} from './image-root.ts'
import { manifestsOf } from './manifests.ts'

const repository = join(import.meta.dirname, '..', '..')
const script = join(repository, 'scripts', 'release.mjs')
const version = '1.2.3-test.1'
const run = promisify(execFile)
const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64'

const children: ChildProcess[] = []
const folder = mkdtempSync(join(tmpdir(), 'sluice-release-'))
const output = join(folder, 'release')
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

/** The commit and its time, so that a copy of the sources without their history can be released too. */
const commit = { GITHUB_SHA: '0123456789'.repeat(4), SOURCE_DATE_EPOCH: '1790000000' }

const release = (target: string, env: NodeJS.ProcessEnv = {}) =>
  run(process.execPath, [script, '--dry-run', version, '--output', target], {
    env: { ...process.env, ...commit, ...env },
  })

/** Waits until a started gateway is ready; fails with what it wrote if it ends before. */
async function untilReady(child: ChildProcess): Promise<void> {
  children.push(child)
  let text = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  await waitFor('readiness', () => {
    if (child.exitCode !== null) throw new Error(`the gateway ended: ${text}`)
    return /^ready$/m.test(text)
  })
}

const runArguments = (manifests: string) => [
  'run',
  '-f',
  manifests,
  '--ephemeral',
  '--bind-address',
  '127.0.0.1',
  ...['admin', 'stats', 'readiness', 'console'].flatMap((part) => [`--${part}-address`, 'off']),
]

describe('npm run release', () => {
  it.each([
    { args: [], message: 'expected one VERSION' },
    { args: ['--dry-run', 'v1'], message: 'not a semantic version: v1' },
    { args: ['1.2.3'], message: 'this command publishes nothing: add --dry-run' },
    { args: ['--publish'], message: "Unknown option '--publish'" },
  ])('rejects $args with exit code 2', async ({ args, message }) => {
    const failure = await run(process.execPath, [script, ...args]).catch((error) => error)
    expect(failure).toMatchObject({ code: 2 })
    expect(failure.stderr).toContain(message)
  })
})

describeWithParts(['release-downloads', 'helm', 'kubectl'], 'a release', () => {
  beforeAll(async () => {
    await release(output)
  }, 600_000)

  it('contains a checksum of every artifact', async () => {
    const { stdout } = await run('sha256sum', ['--check', 'SHA256SUMS'], { cwd: output })
    const checked = [...stdout.matchAll(/^(.*): OK$/gm)].map(([, name]) => name)
    const files = globSync('**', { cwd: output, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name !== 'SHA256SUMS')
      .map((entry) => join(entry.parentPath, entry.name).slice(output.length + 1))
    expect(checked.sort()).toEqual(files.sort())
    expect(checked.length).toBeGreaterThan(12)
  })

  it('has the same bytes from a checkout of another folder, umask, language and time zone', async () => {
    const checkout = join(folder, 'another name')
    const again = join(folder, 'again')
    const program = `
      umask 077
      mkdir "$1" && cp -R --preserve=timestamps,links $(ls -A | grep -vxE '\\.git|node_modules|reports|test') "$1"
      ln -s "$PWD/node_modules" "$1/node_modules"
      exec "$2" "$1/scripts/release.mjs" --dry-run "$3" --output "$4"`
    const env = { ...process.env, ...commit, TZ: 'Pacific/Auckland', LANG: 'C' }
    const args = ['-c', program, 'sh', checkout, process.execPath, version, again]
    await run('sh', args, { cwd: repository, env })
    const sums = (of: string) => readFileSync(join(of, 'SHA256SUMS'), 'utf8')
    expect(sums(again)).toBe(sums(output))
    rmSync(again, { recursive: true })
    rmSync(checkout, { recursive: true })
  }, 600_000)

  it('has the licences of what each artifact contains', async () => {
    const read = async (archive: string, file: string) =>
      (await run('tar', ['-xzOf', join(output, archive), file])).stdout
    const name = 'THIRD-PARTY-NOTICES.txt'
    const installed = await read(`sluice-${version}.tgz`, `package/dist/${name}`)
    for (const part of ['preact', 'undici', '@codemirror/view']) {
      expect(installed).toMatch(new RegExp(`^${part} \\d`, 'm'))
    }
    const core = await read(`sluice-core-${version}.tgz`, `package/${name}`)
    expect(core).toMatch(/^@noble\/hashes \d/m)
    expect(core).not.toContain('preact')
    const unzip = async (archive: string, file: string) =>
      (await run('unzip', ['-p', join(output, archive), file])).stdout
    const others = [
      core,
      installed,
      await read(`rust/sluice-core-${version}.crate`, `sluice-core-${version}/${name}`),
      await read(`c/sluice-c-${version}.tar.gz`, `sluice-c-${version}/${name}`),
      await unzip(`go/sluice.dev/sluice/@v/v${version}.zip`, `*/${name}`),
      await unzip('python/sluice_core-1.2.3.dev0+test.1-py3-none-any.whl', `*/licenses/${name}`),
    ]
    for (const text of others) {
      expect(text).toContain('UNICODE LICENSE V3')
      expect(text).toContain('Copyright (c) 2022 OpenAI')
    }
    const { components } = JSON.parse(readFileSync(join(output, 'sbom.cdx.json'), 'utf8'))
    const purls = components.map(({ purl }: { purl: string }) => purl.split('@').at(-2))
    expect(purls).toEqual(
      expect.arrayContaining(['pkg:npm/preact', 'pkg:npm/undici', 'pkg:generic/o200k_base']),
    )
    expect(new Set(components.map(({ purl }: { purl: string }) => purl)).size).toBe(purls.length)
  })

  it('names the commit and every artifact in its provenance', () => {
    const statement = JSON.parse(readFileSync(join(output, 'provenance.intoto.json'), 'utf8'))
    const names = statement.subject.map(({ name }: { name: string }) => name)
    expect(names).toContain(`sluice-${version}.tgz`)
    expect(names).toContain(`images/controller-${version}.oci.tar`)
    expect(names).toContain(`sluice-core-${version}.tgz`)
    expect(names).toContain('python/sluice_core-1.2.3.dev0+test.1-py3-none-any.whl')
    expect(names).toContain(`rust/sluice-core-${version}.crate`)
    expect(names).toContain(`c/sluice-c-${version}.tar.gz`)
    expect(names).toContain(`go/sluice.dev/sluice/@v/v${version}.zip`)
    const { resolvedDependencies } = statement.predicate.buildDefinition
    expect(resolvedDependencies[0].digest.gitCommit).toBe(commit.GITHUB_SHA)
  })

  describe('the npm package', () => {
    const prefix = join(folder, 'prefix')
    const sluice = join(prefix, 'bin', 'sluice')
    const env = {
      ...process.env,
      PATH: `${join(process.execPath, '..')}:${process.env.PATH}`,
      npm_config_audit: 'false',
      npm_config_fund: 'false',
    }
    beforeAll(async () => {
      mkdirSync(prefix)
      const tarball = join(output, `sluice-${version}.tgz`)
      await run('npm', ['install', '-g', '--prefer-offline', '--prefix', prefix, tarball], { env })
    }, 120_000)

    it('installs less than 120 MB', async () => {
      const { stdout } = await run('du', ['-sm', prefix])
      expect(Number.parseInt(stdout, 10)).toBeLessThan(120)
    })

    it('provides a command that serves requests', async () => {
      expect((await run(sluice, ['version'], { env })).stdout).toBe(`${version}\n`)
      const port = await freePort()
      const manifests = join(folder, 'all.yaml')
      writeFileSync(manifests, manifestsOf(port, 'from the package'))
      await untilReady(spawn(sluice, runArguments(manifests), { env }))
      expect(await send(port)).toMatchObject({ status: 200, body: 'from the package' })
    })

    it('has the packages that only a log on NATS needs', async () => {
      const port = await freePort()
      const failure = await run(sluice, ['status', '--nats', `nats://127.0.0.1:${port}`], {
        env,
      }).catch((error) => error)
      expect(failure.stderr).toContain(`cannot connect to nats://127.0.0.1:${port}`)
    })
  })

  describe('the standalone archive', () => {
    const place = join(folder, 'standalone')
    const name = `sluice-${version}-linux-${architecture}.tar.gz`
    const launcher = join(place, `sluice-${version}`, 'bin', 'sluice')
    beforeAll(() => {
      mkdirSync(place)
      unpack(join(output, name), place)
    })

    it('needs no Node on the machine', async () => {
      const { stdout } = await run(launcher, ['version'], { env: { PATH: '/usr/bin:/bin' } })
      expect(stdout).toBe(`${version}\n`)
    })

    it('is a plugin of kubectl as its manifest for krew says', async () => {
      const { spec } = parse(readFileSync(join(output, 'krew', 'sluice.yaml'), 'utf8'))
      const [platform] = spec.platforms.filter(
        ({ selector }: { selector: { matchLabels: { arch: string } } }) =>
          selector.matchLabels.arch === architecture,
      )
      const digest = createHash('sha256')
        .update(readFileSync(join(output, name)))
        .digest('hex')
      expect(platform).toMatchObject({ sha256: digest, uri: expect.stringContaining(name) })
      // krew links the command under the name that kubectl looks for.
      symlinkSync(join(place, platform.bin), join(place, 'kubectl-sluice'))
      const env = { ...process.env, PATH: `${place}:${process.env.PATH}` }
      const { stdout } = await run(partPath('kubectl'), ['sluice', 'version'], { env })
      expect(stdout).toBe(`${version}\n`)
    })
  })

  describe.each(['controller', 'sluice-proxy'])('the image %s', (name) => {
    let layout: Layout
    let manifests: readonly Descriptor[]
    let root: string
    let port: number
    let own: { readonly image: ImageConfig; readonly layers: readonly Descriptor[] }
    beforeAll(async () => {
      const archive = join(output, 'images', `${name}-${version}.oci.tar`)
      layout = new Layout(archive, join(folder, name))
      const [index, ...others] = layout.entries()
      if (index === undefined || others.length > 0) throw new Error('expected one tagged index')
      expect(index.annotations).toEqual({ 'org.opencontainers.image.ref.name': version })
      manifests = layout.read<{ manifests: Descriptor[] }>(index).manifests
      own = imageOf(ofPlatform(architecture))
      root = unpackedRoot(layout, own.layers, join(folder, `${name}-root`))
      port = await freePort()
      addMountPoints(root, manifestsOf(port, 'from the image'))
    })
    const imageOf = (descriptor: Descriptor) => {
      const manifest = layout.read<{ config: Descriptor; layers: Descriptor[] }>(descriptor)
      return { ...manifest, image: layout.read<ImageConfig>(manifest.config) }
    }
    const ofPlatform = (wanted: string) => {
      const found = manifests.find(({ platform }) => platform?.architecture === wanted)
      if (found === undefined) throw new Error(`no image for ${wanted}`)
      return found
    }

    it.each([
      { platform: 'amd64', machine: 0x3e },
      { platform: 'arm64', machine: 0xb7 },
    ])(
      'has layers with the digests of its configuration for $platform',
      ({ platform, machine }) => {
        const { image, layers } = imageOf(ofPlatform(platform))
        const contents = layers.map((layer) => gunzipSync(readFileSync(layout.blobPath(layer))))
        const digests = contents.map((tar) => createHash('sha256').update(tar).digest('hex'))
        expect(image.rootfs.diff_ids).toEqual(digests.map((digest) => `sha256:${digest}`))
        // The machine of the ELF header says whether Node is the one of the platform.
        const node = contents[1] ?? Buffer.alloc(0)
        expect(node.readUInt16LE(node.indexOf('\x7fELF') + 18)).toBe(machine)
      },
    )

    it('has an SBOM of exactly the packages that it contains, and provenance', async () => {
      const manifest = ofPlatform(architecture)
      const root = await unpackedRoot(
        layout,
        imageOf(manifest).layers,
        join(folder, `${name}-sbom`),
      )
      const attestation = manifests.find(
        ({ annotations }) => annotations?.['vnd.docker.reference.digest'] === manifest.digest,
      )
      const statements = layout
        .read<{ layers: Descriptor[] }>(attestation ?? manifest)
        .layers.map((layer) => layout.read<Statement>(layer))
      expect(statements.map(({ subject }) => subject[0]?.digest.sha256)).toEqual(
        statements.map(() => manifest.digest.replace('sha256:', '')),
      )
      const [sbom, provenance] = statements
      expect(provenance?.predicateType).toBe('https://slsa.dev/provenance/v1')
      const listed = (sbom?.predicate.components ?? []).map(({ purl }) => purl)
      expect(listed.filter((purl) => purl.startsWith('pkg:npm/')).length).toBeGreaterThan(20)
      expect(packagesIn(root)).toEqual(listed.map(withoutQualifiers).sort())
      const unknown = (sbom?.predicate.components ?? []).filter(({ licenses = [] }) => !licenses[0])
      expect(unknown).toEqual([])
    })

    describe.skipIf(!canEnter)('in namespaces (if the system permits them)', () => {
      const print = async (args: readonly string[], entrypoint?: readonly string[]) => {
        const child = spawnInside(root, own.image, args, entrypoint)
        const text = await Promise.all([child.stdout.toArray(), child.stderr.toArray()])
        return text.flat().join('')
      }

      it('starts its command', async () => {
        expect(await print([...own.image.config.Cmd, '--help'])).toContain(
          `Usage: sluice ${name === 'controller' ? 'controller' : 'proxy'}`,
        )
      })

      it('runs as an unprivileged user that can write only to /tmp', async () => {
        const program = `
          const { writeFileSync } = require('node:fs')
          const can = (path) => { try { writeFileSync(path, ''); return true } catch { return false } }
          console.log(JSON.stringify([process.getuid(), can('/app/x'), can('/x'), can('/tmp/x')]))`
        const answer = await print(['-e', program], ['node'])
        expect(JSON.parse(answer)).toEqual([10101, false, false, true])
      })

      it('serves a request', async () => {
        await untilReady(spawnInside(root, own.image, runArguments('/manifests')))
        expect(await send(port)).toMatchObject({ status: 200, body: 'from the image' })
      })
    })
  })

  it('has a chart that installs the images by their digests', async () => {
    const digests = JSON.parse(readFileSync(join(output, 'images.json'), 'utf8')) as {
      image: string
      digest: string
    }[]
    const chart = join(output, 'charts', `sluice-${version}.tgz`)
    const { stdout } = await run(partPath('helm'), ['template', 'sluice', chart])
    const [controller, proxy] = digests
    expect(stdout).toContain(`image: ${controller?.image}@${controller?.digest}`)
    expect(stdout).toContain(`value: "${version}@${proxy?.digest}"`)
    const custom = ['--set', 'image.tag=own']
    const changed = await run(partPath('helm'), ['template', 'sluice', chart, ...custom])
    expect(changed.stdout).toContain('controller:own\n')

    const standalone = join(output, 'charts', `sluice-standalone-${version}.tgz`)
    const alone = await run(partPath('helm'), ['template', 'gateway', standalone])
    expect(alone.stdout).toContain(`image: ${proxy?.image}@${proxy?.digest}`)
  })

  it.each(['sluice', 'sluice-crds', 'sluice-standalone'])(
    'has the chart %s as an OCI layout',
    (name) => {
      const archive = join(output, 'charts', `${name}-${version}.oci.tar`)
      const layout = new Layout(archive, join(folder, `chart-${name}`))
      const [manifest] = layout.entries()
      const { config, layers } = layout.read<{ config: Descriptor; layers: Descriptor[] }>(
        manifest ?? { digest: '' },
      )
      expect(layout.read(config)).toMatchObject({ name, version, appVersion: version })
      const packed = readFileSync(join(output, 'charts', `${name}-${version}.tgz`))
      expect(layers.map((layer) => readFileSync(layout.blobPath(layer)))).toEqual([packed])
    },
  )

  it('has release notes from the changelog', () => {
    const notes = readFileSync(join(output, 'release-notes.md'), 'utf8')
    expect(notes).toMatch(new RegExp(`^# Sluice ${version}\n`))
    expect(notes).toContain('### Listeners and routes')
    expect(notes).not.toMatch(/^## /m)
  })
})

interface Statement {
  readonly subject: readonly { readonly digest: { readonly sha256: string } }[]
  readonly predicateType: string
  readonly predicate: {
    readonly components?: readonly { readonly purl: string; readonly licenses?: unknown[] }[]
  }
}

function unpackedRoot(layout: Layout, layers: readonly Descriptor[], root: string): string {
  mkdirSync(root)
  for (const layer of layers) unpack(layout.blobPath(layer), root)
  return root
}
