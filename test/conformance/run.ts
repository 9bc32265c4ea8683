/**
 * `npm run conformance`: the conformance suite of the Gateway API or of its Inference Extension,
 * against a real API server, the controller, and the proxies that it deploys. Everything runs in
 * namespaces of its own; pods have addresses of their own, so nothing of the machine is touched.
 *
 * Exit code: 0 everything passed, 1 something failed, 2 wrong usage, 75 this machine cannot run it.
 */
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { crds as ownCrds } from '../../src/control/api/crds.ts'
import { type ApiServer, apiServerParts, startApiServer } from '../support/api-server.ts'
import { TestCluster } from '../support/cluster.ts'
import { ControllerProcess } from '../support/controller.ts'
import { type Crd, readCrds } from '../support/crds.ts'
import { canUnshare } from '../support/namespaces.ts'
import { findPart, partPath } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'
import { startKubelet } from './kubelet.ts'
import { balancerPrefix, makeNetwork, nodeAddress } from './network.ts'
import { Workloads } from './workloads.ts'

const help = `npm run conformance -- [options] [-- flags of the suite]

  --inference        run the suite of the Gateway API Inference Extension instead
  --test NAME,…      only these tests
  --features NAME,…  claim these too, beside those in the status of the GatewayClass
  --channel NAME     of the Gateway API's CRDs: experimental (default), or standard, which has no retry
  --report FILE      write the suite's report (YAML) where everything passed
  --logs FOLDER      write what the controller, the proxies and the backends wrote`

const root = join(import.meta.dirname, '..', '..')
const className = 'agentgateway'

/** What differs between the suites: the Go package, which gives the program its name, and flags. */
interface Suite {
  readonly program: string
  readonly package: string
  readonly flags: (features: readonly string[], more: readonly string[]) => readonly string[]
}

const gatewaySuite: Suite = {
  program: 'gateway-suite',
  package: '.',
  flags: (features, more) => [
    `--conformance-profiles=${['HTTP', 'TLS', 'GRPC', 'TCP', 'UDP'].map((name) => `GATEWAY-${name}`).join(',')}`,
    // Without this flag the suite reads the class itself, and its report says so.
    ...(more.length > 0 ? [`--supported-features=${[...features, ...more].join(',')}`] : []),
    `--usable-address=${balancerPrefix}250`,
    '--unusable-address=192.0.2.77',
  ],
}

const inferenceSuite: Suite = {
  program: 'inference-suite',
  package: './inference',
  flags: () => [],
}

/** The programs that stand for images of the suites, and the packages that they are built from. */
const images = {
  'echo-basic': 'sigs.k8s.io/gateway-api/conformance/echo-basic',
  lwepp: 'sigs.k8s.io/gateway-api-inference-extension/cmd/lwepp',
  dns: './dns',
}
const inside = 'SLUICE_CONFORMANCE_INSIDE'
const namespaces = ['--net', '--pid', '--fork', '--mount-proc', '--kill-child']

interface Options {
  readonly suite: Suite
  readonly tests: readonly string[]
  readonly features: readonly string[]
  readonly channel: string
  readonly report: string | undefined
  readonly logs: string | undefined
  readonly flags: readonly string[]
}

function readOptions(): Options {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      inference: { type: 'boolean', default: false },
      test: { type: 'string', default: '' },
      features: { type: 'string', default: '' },
      channel: { type: 'string', default: 'experimental' },
      report: { type: 'string' },
      logs: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help || !['standard', 'experimental'].includes(values.channel)) {
    throw new Error(help)
  }
  const names = (text: string) => text.split(',').filter((name) => name !== '')
  return {
    suite: values.inference ? inferenceSuite : gatewaySuite,
    tests: names(values.test),
    features: names(values.features),
    channel: values.channel,
    report: values.report && resolve(values.report),
    logs: values.logs && resolve(values.logs),
    flags: positionals,
  }
}

/** The reason why this machine cannot run the suite; undefined if it can. */
function obstacle(): string | undefined {
  const parts = [...apiServerParts, 'gateway-api-crds', 'inference-crds', 'go'] as const
  for (const name of parts) {
    const part = findPart(name)
    if (!part.found) return `${part.reason}; test/assets/setup makes what is missing`
  }
  if (canUnshare(namespaces, ['sh', '-c', 'ip link add pods type bridge'])) return undefined
  return 'network namespaces with a bridge (unshare and ip, as root on Linux) are needed'
}

/** Builds the suites and what stands for their images, once for each state of the module. */
function build(): string {
  const here = import.meta.dirname
  const hash = createHash('sha256')
  for (const file of globSync(['go.*', '**/*.go'], { cwd: here }).sort()) {
    hash.update(readFileSync(join(here, file)))
  }
  const caches = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache')
  const assets = process.env.SLUICE_ASSETS ?? join(caches, 'sluice-assets')
  const folder = join(assets, 'programs', `conformance-${hash.digest('hex').slice(0, 12)}`)
  if (existsSync(folder)) return folder
  console.error(`conformance: building ${folder}, which takes a minute or more`)
  const made = `${folder}.${process.pid}`
  const go = (...args: string[]) =>
    execFileSync(partPath('go'), args, { cwd: here, stdio: 'inherit' })
  mkdirSync(made, { recursive: true })
  go('build', '-o', made, ...Object.values(images))
  for (const { program, package: name } of [gatewaySuite, inferenceSuite]) {
    go('test', '-c', '-o', join(made, program), name)
  }
  renameSync(made, folder)
  return folder
}

async function outside(): Promise<number> {
  readOptions()
  const reason = obstacle()
  if (reason !== undefined) {
    console.error(`conformance: not run: ${reason}`)
    return 75
  }
  const programs = build()
  execFileSync(process.execPath, ['scripts/build.mjs', '--if-needed'], {
    cwd: root,
    stdio: 'inherit',
  })
  const own = [process.execPath, ...process.execArgv, ...process.argv.slice(1)]
  const child = spawn('unshare', [...namespaces, ...own], {
    stdio: 'inherit',
    env: { ...process.env, [inside]: programs },
  })
  return new Promise((done) => child.once('close', (code) => done(code ?? 1)))
}

/** The program that an image of the suite, or of a deployed proxy, stands for. */
function programOf(programs: string): (image: string) => string {
  return (image) => {
    if (image.includes('/echo-basic:')) return join(programs, 'echo-basic')
    if (image.includes('/lwepp:')) return join(programs, 'lwepp')
    if (image.includes('/coredns:')) return join(programs, 'dns')
    if (image.includes('/sluice-proxy:')) return join(root, 'bin', 'sluice')
    throw new Error(`no program stands for the image ${image}`)
  }
}

async function addNode(server: ApiServer, port: number): Promise<void> {
  const nodes = '/api/v1/nodes'
  await server.request('POST', nodes, { metadata: { name: 'node-1' } })
  await server.request('PATCH', `${nodes}/node-1/status`, {
    status: {
      addresses: [{ type: 'InternalIP', address: nodeAddress }],
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  })
}

async function insideNamespaces(programs: string): Promise<number> {
  const options = readOptions()
  await makeNetwork()
  const server = await startApiServer({ address: nodeAddress })
  const crds = [
    ...readCrds(join(partPath('gateway-api-crds'), options.channel)),
    ...readCrds(partPath('inference-crds')),
  ]
  const cluster = new TestCluster(server)
  await cluster.install([...crds, ...(ownCrds() as readonly Crd[])])
  const controller = await new ControllerProcess({
    kubeconfig: server.kubeconfig,
    args: ['--xds-address', `${nodeAddress}:0`],
    env: {
      SLUICE_XDS_SERVICE_NAME: 'sluice',
      POD_NAMESPACE: 'default',
      SLUICE_INFERENCE_EXTENSION_ENABLED: 'true',
    },
  }).start()
  const workloads = new Workloads({
    server,
    programOf: programOf(programs),
    // Endpoint pickers watch pools and pods.
    environmentOf: (image): Readonly<Record<string, string>> =>
      image.includes('/lwepp:') ? { KUBECONFIG: server.kubeconfig } : {},
    hosts: { 'sluice.default.svc.cluster.local:9978': await controller.xdsAddress() },
  })
  const kubelet = await startKubelet((namespace, name) => workloads.logOf(namespace, name))
  await addNode(server, kubelet.port)
  workloads.start()
  try {
    const features = await claimed(cluster)
    return await runSuite(programs, server, features, options)
  } finally {
    if (options.logs !== undefined) writeLogs(options.logs, controller, workloads)
    await workloads.stop()
    kubelet.server.close()
    await controller.dispose()
    await server.stop()
  }
}

/** The features that the GatewayClass claims, once it is there. */
async function claimed(cluster: TestCluster): Promise<readonly string[]> {
  return waitFor('features in the status of the GatewayClass', async () => {
    const status = await cluster.get('GatewayClass', className)
    const features: readonly { readonly name: string }[] = status?.status?.supportedFeatures ?? []
    return features.length > 0 && features.map(({ name }) => name)
  })
}

function runSuite(
  programs: string,
  server: ApiServer,
  features: readonly string[],
  { suite, tests, features: more, report, flags }: Options,
): Promise<number> {
  const only = tests.length > 0 ? ['-test.run', `^TestConformance$/^(${tests.join('|')})$`] : []
  const child = spawn(
    join(programs, suite.program),
    [
      '-test.v',
      '-test.timeout=90m',
      // One after the other: proxies that start together take each other's time.
      '-test.parallel=1',
      ...only,
      `--gateway-class=${className}`,
      ...suite.flags(features, more),
      '--cleanup-base-resources=false',
      '--organization=sluice-dev',
      '--project=sluice',
      '--url=https://github.com/sluice-dev/sluice',
      '--version=0.1.0',
      '--contact=https://github.com/sluice-dev/sluice/issues',
      ...(report === undefined ? [] : [`--report-output=${report}`]),
      ...flags,
    ],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, KUBECONFIG: server.kubeconfig },
    },
  )
  const results = new Results()
  createInterface(child.stdout).on('line', (line) => {
    results.read(line)
    console.log(line)
  })
  return new Promise((done) =>
    child.once('close', (code) => {
      console.log(results.text())
      // The report counts parallel tests as passed before they have ended.
      if (code !== 0 && report !== undefined) rmSync(report, { force: true })
      done(code === 0 ? 0 : 1)
    }),
  )
}

/** What became of each test of the suite, by the lines of `go test`. */
class Results {
  readonly #names = new Map<string, string[]>()

  read(line: string): void {
    const [, result, name] = /^ {4}--- (PASS|FAIL|SKIP): TestConformance\/(\w+) /.exec(line) ?? []
    if (result !== undefined && name !== undefined) this.#of(result).push(name)
  }

  text(): string {
    const count = (result: string) => this.#of(result).length
    const counts = `${count('PASS')} passed, ${count('FAIL')} failed, ${count('SKIP')} skipped`
    const failed = this.#of('FAIL').map((name) => `conformance: failed: ${name}`)
    return [`conformance: ${counts}`, ...failed].join('\n')
  }

  #of(result: string): string[] {
    const names = this.#names.get(result) ?? []
    this.#names.set(result, names)
    return names
  }
}

function writeLogs(folder: string, controller: ControllerProcess, workloads: Workloads): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'controller'), controller.stderr)
  for (const [name, text] of workloads.logs()) writeFileSync(join(folder, name), text)
}

try {
  const programs = process.env[inside]
  process.exitCode = await (programs === undefined ? outside() : insideNamespaces(programs))
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 2
}
