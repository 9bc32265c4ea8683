/**
 * The images without a container engine: the steps of the Dockerfile make a file tree, and its
 * commands run in it in namespaces of their own, as the image's user, on a read-only root.
 */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../support/gateway.ts'
import { send } from '../support/http-client.ts'
import { canUnshare } from '../support/namespaces.ts'
import { waitFor } from '../support/wait-for.ts'

const repository = join(import.meta.dirname, '..', '..')
const image = join(repository, 'scripts', 'image')

/** What a stage of the Dockerfile tells a container engine. */
interface Stage {
  readonly env: Readonly<Record<string, string>>
  readonly user: string
  readonly entrypoint: readonly string[]
  readonly command: readonly string[]
}

/** Reads the stages that begin at `base`; a stage has what its own parent has. */
function stageOf(name: string): Stage {
  const text = readFileSync(join(image, 'Dockerfile'), 'utf8')
  const bodies = new Map(
    [...text.matchAll(/^FROM \S+ AS (\S+)\n([\s\S]*?)(?=^FROM |$(?![\s\S]))/gm)].map(
      ([, stage = '', body = '']) => [stage, body],
    ),
  )
  const body = `${bodies.get('base')}${bodies.get(name)}`
  const allOf = (word: string) =>
    [...body.matchAll(new RegExp(`^${word} (.*)$`, 'gm'))].map(([, value = '']) => value)
  const lastOf = (word: string) => allOf(word).at(-1) ?? ''
  return {
    env: Object.fromEntries(
      allOf('ENV')
        .flatMap((line) => line.split(' '))
        .map((pair) => pair.split('=') as [string, string]),
    ),
    user: lastOf('USER'),
    entrypoint: JSON.parse(lastOf('ENTRYPOINT')),
    command: JSON.parse(lastOf('CMD')),
  }
}

/** Gives the folder a file system as its own, read-only but for /tmp, and runs a command in it. */
const enter = `
set -e
root=$1; user=$2; group=$3; shift 3
mount --bind "$root" "$root"
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
mount -o remount,bind,ro "$root"
exec unshare --user --map-user="$user" --map-group="$group" --root="$root" --wd=/app -- "$@"
`

const namespaces = ['--user', '--map-root-user', '--mount']
const isPermitted = canUnshare(namespaces, ['true'])

/** What the base image brings: Node and the libraries that it is linked with. */
function addBase(root: string): void {
  const copy = (from: string, to: string) => {
    mkdirSync(dirname(join(root, to)), { recursive: true })
    copyFileSync(from, join(root, to))
  }
  copy(process.execPath, '/nodejs/bin/node')
  const linked = execFileSync('ldd', [process.execPath], { encoding: 'utf8' })
  for (const [library] of linked.matchAll(/\/\S+/g)) copy(library, library)
  for (const folder of ['proc', 'dev', 'tmp', 'manifests']) {
    mkdirSync(join(root, folder), { recursive: true })
  }
}

describe('the file tree of the images', () => {
  const children: ChildProcess[] = []
  let root: string
  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), 'sluice-image-'))
    const assemble = join(image, 'assemble.mjs')
    await promisify(execFile)(process.execPath, [assemble, join(root, 'app')])
    if (isPermitted) addBase(root)
  }, 60_000)
  afterAll(() => {
    for (const child of children) child.kill('SIGKILL')
    rmSync(root, { recursive: true, force: true })
  })

  it('includes an SBOM of exactly the packages that it contains', async () => {
    const sbom = JSON.parse(readFileSync(join(root, 'app', 'sbom.cdx.json'), 'utf8')) as {
      bomFormat: string
      components: { name: string; version: string; purl: string }[]
    }
    expect(sbom.bomFormat).toBe('CycloneDX')
    const listed = sbom.components.map(({ name, version }) => `${name}@${version}`).sort()
    const { stdout } = await promisify(execFile)('find', [
      join(root, 'app', 'node_modules'),
      '-name',
      'package.json',
    ])
    const held = stdout
      .split('\n')
      .filter((file) => /\/node_modules\/(@[^/]+\/)?[^/]+\/package\.json$/.test(file))
      .map((file) => JSON.parse(readFileSync(file, 'utf8')) as { name: string; version: string })
      .map(({ name, version }) => `${name}@${version}`)
    expect(listed).toEqual([...new Set(held)].sort())
    expect(listed.some((one) => one.startsWith('vitest@'))).toBe(false)
  })

  describe.skipIf(!isPermitted)('in namespaces of its own (if the system permits them)', () => {
    const argsOf = ({ user, entrypoint }: Stage, command: readonly string[]) => {
      const [uid = '', gid = ''] = user.split(':')
      const inside = ['sh', '-c', enter, 'sh', root, uid, gid, ...entrypoint, ...command]
      return [...namespaces, ...inside]
    }
    const run = (stage: Stage, command: readonly string[]) =>
      promisify(execFile)('unshare', argsOf(stage, command), { env: environment(stage) })
    /** The namespaces are made with tools of the host; Node comes from the path of the image. */
    const environment = ({ env }: Stage) => ({ ...env, PATH: `${env.PATH}:${process.env.PATH}` })

    it.each(['controller', 'proxy'])('starts the command of the %s', async (target) => {
      const stage = stageOf(target)
      expect(stage.command).toEqual([target])
      const { stdout } = await run(stage, [...stage.command, '--help'])
      expect(stdout).toContain(`Usage: sluice ${target}`)
    })

    it('runs as the user of the image, which can write only to /tmp', async () => {
      const { user, ...stage } = stageOf('proxy')
      const script = `
        const { writeFileSync } = require('node:fs')
        const can = (path) => { try { writeFileSync(path, ''); return true } catch { return false } }
        console.log(JSON.stringify([process.getuid(), can('/app/x'), can('/x'), can('/tmp/x')]))`
      const bare = { ...stage, user, entrypoint: ['node'] }
      const { stdout } = await run(bare, ['-e', script])
      expect(JSON.parse(stdout)).toEqual([Number(user.split(':')[0]), false, false, true])
    })

    it('serves a request', async () => {
      const port = await freePort()
      writeFileSync(join(root, 'manifests', 'all.yaml'), manifests(port))
      const off = ['admin', 'stats', 'readiness'].flatMap((part) => [`--${part}-address`, 'off'])
      const stage = stageOf('proxy')
      const command = [
        'run',
        '-f',
        '/manifests',
        '--ephemeral',
        '--bind-address',
        '127.0.0.1',
        ...off,
      ]
      const child = spawn('unshare', argsOf(stage, command), { env: environment(stage) })
      children.push(child)
      let said = ''
      child.stderr.on('data', (chunk: Buffer) => {
        said += chunk.toString()
      })
      await waitFor('readiness', () => {
        if (child.exitCode !== null) throw new Error(`it ended: ${said}`)
        return /^ready$/m.test(said)
      })
      expect(await send(port)).toMatchObject({ status: 200, body: 'from the image' })
    })
  })
})

const manifests = (port: number) => `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: edge, namespace: default }
spec:
  gatewayClassName: agentgateway
  listeners: [{ name: http, port: ${port}, protocol: HTTP }]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: all, namespace: default }
spec:
  parentRefs: [{ name: edge }]
  rules: [{}]
---
apiVersion: sluice.dev/v1alpha1
kind: GatewayPolicy
metadata: { name: answer, namespace: default }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: all }]
  traffic:
    directResponse: { status: 200, body: from the image }
`
