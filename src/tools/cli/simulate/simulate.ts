/** `sluice simulate` shows what a proxy with a configuration would decide about requests. */
import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import { readFileBytes } from '../../../ground/base/read-whole-file.ts'
import { objectKey } from '../../../ground/model/names.ts'
import type { ListenerResource, VersionedResource } from '../../../ground/model/resources.ts'
import { type ReadResult, readBlocks, readFolder } from '../../../past/decisions/read.ts'
import { recordKeyOf } from '../../../past/decisions/ring.ts'
import type { Fold } from '../../../past/replay/index.ts'
import { requestOf, type Simulation, Simulator } from '../../../past/simulate/index.ts'
import { problemText } from '../decisions/source.ts'
import { type ExplainRequestOptions, readPathRule, readRequest } from '../explain/request.ts'
import { readState } from '../recording/recording.ts'
import { exitCode, type Output, type OutputFormat, UsageError } from '../shared/output.ts'
import { readStates } from '../what-if/state.ts'
import { readAccessLog } from './access-log.ts'
import { readAssumptions } from './assumptions.ts'
import { readCurl } from './curl.ts'
import type { GivenRequest } from './given-request.ts'
import { type ReadRequest, readHar } from './har.ts'
import { simulationText } from './text.ts'

export interface SimulateOptions extends ExplainRequestOptions {
  /** A curl command line. */
  readonly curl?: string
  /** A HAR file. */
  readonly har?: string
  /** A folder of decision records, or an access log. */
  readonly requests?: string
  /** `STEP=pass`, `STEP=STATUS` or `backend=NAME`. */
  readonly assume?: readonly string[]
  /** Scheme of a request by flags; http if omitted. */
  readonly scheme?: 'http' | 'https'
  /** Address of the client of a request by flags. */
  readonly source?: string
  /** Whether the manifests are added to the state of the log. */
  readonly overlay?: boolean
  readonly output: OutputFormat
}

/** Ending of the names of files with decision records. */
const ending = '.decisions'

/** Exit code if at least one request is undecided. */
const someUndecided = 3

/** @throws UsageError */
export async function simulate(options: SimulateOptions, output: Output): Promise<number> {
  const source = sourceOf(options)
  const { fold, secrets } = await stateOf({ ...options, ...positionOf(options) }, output.report)
  const resources = [...secrets, ...fold.resources()]
  const simulator = await Simulator.open(resources, {
    ...readAssumptions(options.assume ?? []),
    ...digestKeyOf(options),
    generationOf: (object) => generationOf(fold, object),
    settings: { ambiguousPaths: readPathRule(options) },
  })
  try {
    return await new Run(simulator, listenersOf(resources), options, output).all(source)
  } finally {
    simulator.close()
  }
}

/** The state of the only input, or, with `--overlay`, that of a log to which manifests are added. */
async function stateOf(options: SimulateOptions, report: Output['report']) {
  const { overlay, file } = options
  if (overlay !== true) return readState(options, report)
  if (file === undefined) throw new UsageError('--overlay needs manifests (-f)')
  return readStates({ ...options, file, overlay }, report)
}

type RequestSource = Iterable<ReadRequest> | AsyncIterable<ReadRequest>

/** Simulates requests one by one, and prints each result. */
class Run {
  readonly #simulator: Simulator
  readonly #listeners: readonly ListenerResource[]
  readonly #options: SimulateOptions
  readonly #output: Output
  #simulated = 0
  #undecided = 0
  #unreadable = 0

  constructor(
    simulator: Simulator,
    listeners: readonly ListenerResource[],
    options: SimulateOptions,
    output: Output,
  ) {
    this.#simulator = simulator
    this.#listeners = listeners
    this.#options = options
    this.#output = output
  }

  async all(source: RequestSource): Promise<number> {
    for await (const read of source) {
      if ('problem' in read) {
        this.#unreadable++
        this.#output.report(read.problem)
      } else {
        for (const request of this.#onPorts(read.request)) await this.#one(request)
      }
    }
    if (this.#unreadable > 0 && this.#simulated === 0) return exitCode.usage
    return this.#undecided > 0 ? someUndecided : exitCode.success
  }

  async #one(request: GivenRequest): Promise<void> {
    const simulation = await this.#simulator.simulate(request)
    this.#simulated++
    if (simulation.undecided.length > 0) this.#undecided++
    this.#print(simulation)
    await this.#output.ready?.()
  }

  #print(simulation: Simulation): void {
    const { output } = this.#options
    if (output === 'json') this.#output.print(JSON.stringify(simulation))
    else for (const line of simulationText(simulation)) this.#output.print(line)
  }

  /** A request without a listener port is simulated on each port that it may have come to. */
  #onPorts(request: GivenRequest): GivenRequest[] {
    const { port } = this.#options
    if (request.recorded !== undefined) return [request]
    if (port !== undefined) return [{ ...request, port: Number(port) }]
    const listener = this.#listeners.find((one) => {
      const gateway = `${one.gateway.namespace}/${one.gateway.name}`
      return gateway === request.gateway && one.section === request.listener
    })
    if (listener !== undefined) {
      const scheme = listener.protocol === 'HTTPS' ? 'https' : 'http'
      return [{ ...request, port: listener.port, scheme }]
    }
    const ports = this.#simulator.ports(request.scheme)
    const { urlPort } = request
    if (urlPort !== undefined && ports.includes(urlPort)) return [{ ...request, port: urlPort }]
    return ports.length === 0 ? [request] : ports.map((each) => ({ ...request, port: each }))
  }
}

/** @throws UsageError if the options name no request, or several sources of requests */
function sourceOf(options: SimulateOptions): RequestSource {
  const { curl, har, requests, host } = options
  const given = [curl, har, requests, host].filter((source) => source !== undefined)
  if (given.length !== 1) {
    throw new UsageError(
      'name the requests with exactly one of --curl, --har, --requests and --host',
    )
  }
  if (curl !== undefined) return [{ request: readCurl(curl) }]
  if (har !== undefined) return readHar(har)
  if (requests !== undefined) return readRequests(requests)
  return [{ request: flagRequest(options) }]
}

function flagRequest(options: SimulateOptions): GivenRequest {
  const { headers, query, ...request } = readRequest(options)
  return {
    ...request,
    ...(query !== undefined && { query }),
    scheme: options.scheme ?? 'http',
    headers: headers.map(([name, value]) => ({ name, value })),
    ...(options.source !== undefined && { source: { address: options.source, port: 0 } }),
  }
}

function readRequests(path: string): RequestSource {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) throw new UsageError(`${path} does not exist`)
  if (found.isDirectory()) return readRecords(readFolder(path))
  return path.endsWith(ending)
    ? readRecords(readBlocks(readFileBytes(path), path))
    : readAccessLog(path)
}

function* readRecords(records: Iterable<ReadResult>): Generator<ReadRequest> {
  for (const read of records) {
    if ('decision' in read) yield { request: requestOf(read.decision) }
    else yield { problem: problemText(read.problem) }
  }
}

function digestKeyOf({ requests }: SimulateOptions): { digestKey?: Uint8Array } {
  if (requests === undefined) return {}
  const folder = statSync(requests, { throwIfNoEntry: false })?.isDirectory()
    ? requests
    : dirname(requests)
  return { digestKey: recordKeyOf(folder) }
}

/** `--log-file PATH@POSITION` is short for `--log-file PATH --at POSITION`. */
function positionOf({ logFile, at }: SimulateOptions): { logFile?: string; at?: string } {
  const [, path, position] = /^(.+)@(\d+|\d{4}-\d\d-\d\d[^/@]*)$/.exec(logFile ?? '') ?? []
  if (path === undefined || statSync(logFile ?? '', { throwIfNoEntry: false }) !== undefined) {
    return { logFile, at }
  }
  return { logFile: path, at: position }
}

const listenersOf = (resources: readonly VersionedResource[]): ListenerResource[] =>
  resources.flatMap(({ resource }) => (resource.type === 'listener' ? [resource] : []))

/** `object`: `Kind namespace/name`. */
function generationOf(fold: Fold, object: string): number | undefined {
  const [, kind = '', namespace = '', name = ''] = /^(\S+) ([^/]*)\/(.*)$/.exec(object) ?? []
  const state = fold.graph.object(objectKey({ kind, namespace, name }))
  return state?.object === undefined ? undefined : state.generation
}
