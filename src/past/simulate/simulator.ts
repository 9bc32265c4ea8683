/**
 * Runs requests through the phases of the proxy, in process and without a socket:
 *
 *   resources ──► createDataPlane ──► requestPhases ──► forward | answer | undecided
 *                   │ StepRunner: the verdict of each step
 *                   │ SimulatedExchange: the request, parts of which are unknown
 *                   └ outside.ts: calls fail, and their results are unknown; lookups resolve
 */

import { createIoCore } from '../../engines/core/index.ts'
import type { TlsChoice } from '../../engines/http/tls/tls-choice.ts'
import { createDataPlane, type DataPlane } from '../../gateway/proxy/data-plane.ts'
import type { DataPlaneSettings } from '../../gateway/proxy/plane-runtime.ts'
import { withoutRootDot } from '../../ground/base/root-dot.ts'
import { errorCatalogue } from '../../ground/errors/index.ts'
import { objectText } from '../../ground/model/names.ts'
import type { ListenerResource, VersionedResource } from '../../ground/model/resources.ts'
import { settings as proxySettings } from '../../ground/settings/index.ts'
import { tolerantAppliers } from './appliers.ts'
import { providerField, providerOf, reachedBackend, SimulatedBackends } from './backends.ts'
import { type ExchangeOwner, SimulatedExchange, type SimulatedVerdict } from './exchange.ts'
import { HeaderMatches } from './header-matches.ts'
import { SimulatedLimits } from './limits.ts'
import { noTelemetry, outsideCallouts, outsideEngine, outsideLookup } from './outside.ts'
import { type Assumption, type GenerationOf, StepRunner } from './step-runner.ts'
import type { SimulatedHeader, SimulatedOutcome, SimulatedRequest, Simulation } from './types.ts'

export interface SimulatorOptions {
  /** Verdicts of steps that cannot be computed, by names such as `traffic.extAuth`. */
  readonly assumed?: ReadonlyMap<string, Assumption>
  /** Name of the backend to choose if a rule has several. */
  readonly assumedBackend?: string
  /** Key of the digests in records. */
  readonly digestKey?: Uint8Array
  readonly generationOf?: GenerationOf
  /** Settings of the proxy that decide about requests. */
  readonly settings?: Partial<
    Pick<DataPlaneSettings, 'ambiguousPaths' | 'trustedProxies' | 'clusterDomain' | 'destinations'>
  >
}

/** Pages of the core's memory: 64 MiB for routes and heads. */
const memoryPages = 1_024

export class Simulator {
  readonly #world: SimulationInputs
  readonly #plane: DataPlane
  readonly #listeners: readonly ListenerResource[]
  readonly #tls = new Map<string, TlsChoice>()
  #idle: SimulatedExchange | undefined
  /** Settles when the simulation that waits for a promise is complete. Only one simulation runs at a time. */
  #busy: Promise<unknown> | undefined

  private constructor(
    world: SimulationInputs,
    plane: DataPlane,
    listeners: readonly ListenerResource[],
  ) {
    this.#world = world
    this.#plane = plane
    this.#listeners = listeners
  }

  static async open(
    resources: readonly VersionedResource[],
    options: SimulatorOptions = {},
  ): Promise<Simulator> {
    const core = createIoCore({ memoryPages })
    const world = new SimulationInputs(
      resources,
      options,
      new HeaderMatches(resources, options.digestKey, core),
    )
    const steps = new StepRunner(options.assumed ?? new Map(), options.generationOf ?? noGeneration)
    const mark = (reason: string) => world.current?.unknowns.mark(reason)
    const plane = await createDataPlane({
      core,
      head: core.createHead({ maxFields: 1 }),
      engine: outsideEngine(mark),
      telemetry: noTelemetry,
      buckets: world.limits,
      settings: {
        ambiguousPaths: proxySettings.ambiguousPaths.default,
        destinations: { allow: [], refuse: [], loopback: false },
        ...options.settings,
        random: () => world.draw(),
        lookup: outsideLookup,
      },
      runStep: (step, exchange) => steps.run(step, exchange),
      callouts: outsideCallouts(mark),
      wrapAppliers: tolerantAppliers,
    })
    world.judgeWith(plane.judgeUse, steps)
    plane.apply({ sequence: 1, upserted: resources.filter(isRelevant), removed: [] })
    return new Simulator(world, plane, resources.flatMap(listenerIn))
  }

  /** Returns the listener ports for a scheme in ascending order. */
  ports(scheme: 'http' | 'https'): number[] {
    const protocol = scheme === 'https' ? 'HTTPS' : 'HTTP'
    const found = this.#listeners.flatMap((listener) =>
      listener.protocol === protocol ? [listener.port] : [],
    )
    return [...new Set(found)].sort((a, b) => a - b)
  }

  /** Returns a promise only if a step has to wait, for example for a password hash. */
  simulate(request: SimulatedRequest): Simulation | Promise<Simulation> {
    if (this.#busy !== undefined) return this.#busy.then(() => this.simulate(request))
    const port = request.port ?? this.#onlyPort(request)
    if (port === undefined) return undecided(request, this.#portProblem(request))
    if (request.recorded?.isCut === true) return undecided(request, 'the record is incomplete')
    const exchange = this.#idle ?? new SimulatedExchange(this.#world)
    this.#idle = undefined
    exchange.begin(request, port, this.#tlsOf(request, port))
    this.#world.begin(exchange)
    this.#plane.handler.onRequest(exchange)
    if (exchange.outcome === undefined) return this.#wait(exchange)
    const simulation = this.#end(exchange)
    // Promises of an undecided request may still hold the exchange.
    if (exchange.outcome.verdict !== 'undecided') this.#idle = exchange
    return simulation
  }

  close(): void {
    this.#plane.stop()
  }

  #wait(exchange: SimulatedExchange): Promise<Simulation> {
    const done = new Promise<Simulation>((resolve) => {
      exchange.onOutcome = () => queueMicrotask(() => resolve(this.#end(exchange)))
    })
    this.#busy = done.finally(() => {
      this.#busy = undefined
    })
    return done
  }

  #end(exchange: SimulatedExchange): Simulation {
    const { input, outcome, steps, backendProblem } = exchange
    const verdict = outcome ?? { verdict: 'undecided', reason: 'the simulation did not end' }
    const settled = { ...verdict, ...placeOf(exchange), ...resultOf(exchange, verdict) }
    this.#plane.handler.release(exchange)
    this.#world.end()
    const undecided =
      verdict.verdict === 'undecided'
        ? [verdict.reason ?? '']
        : backendProblem !== undefined && verdict.verdict === 'forward'
          ? [backendProblem]
          : []
    return { request: summaryOf(input, exchange.port), steps, outcome: settled, undecided }
  }

  #onlyPort({ scheme }: SimulatedRequest): number | undefined {
    const ports = this.ports(scheme)
    return ports.length === 1 ? ports[0] : undefined
  }

  #portProblem({ scheme }: SimulatedRequest): string {
    const count = this.ports(scheme).length
    return `port: ${count === 0 ? 'no' : 'more than one'} listener port takes ${scheme}`
  }

  /**
   * Chooses the TLS listener as if the client had sent the host as the server name, unless the record shows
   * that it sent another one.
   */
  #tlsOf({ scheme, host, recorded }: SimulatedRequest, port: number): TlsChoice | undefined {
    if (scheme !== 'https') return undefined
    const name = withoutRootDot(host.replace(/:\d*$/, '')).toLowerCase()
    const isOther = recorded?.response.status === misdirected
    const listener = isOther ? undefined : this.#plane.tlsListener(port, name)
    const key = listener?.resource.key ?? ''
    let choice = this.#tls.get(key)
    if (choice === undefined) {
      const place = listener?.place ?? { gateway: '', listener: '' }
      choice = { listener: key, place, carries: 'http', contexts: undefined }
      this.#tls.set(key, choice)
    }
    return choice
  }
}

function undecided(request: SimulatedRequest, reason: string): Simulation {
  const outcome = { verdict: 'undecided', reason } as const
  return { request: summaryOf(request, request.port), steps: [], outcome, undecided: [reason] }
}

/** Status of requests whose TLS connection was made for another listener. */
const misdirected = errorCatalogue.misdirected.status

const noGeneration = () => undefined

/** Leaves out policies that only observe requests: they would read unknown inputs and send spans. */
/** Policies that only observe requests. */
const observing: ReadonlySet<string> = new Set(['accessLog', 'metrics', 'tracing'])

function isRelevant({ resource }: VersionedResource): boolean {
  if (resource.type !== 'policy' || resource.section !== 'frontend') return true
  return !observing.has(resource.field)
}

const listenerIn = ({ resource }: VersionedResource): ListenerResource[] =>
  resource.type === 'listener' ? [resource] : []

/** Rate limits, route matches and backends for the request that is being simulated. */
class SimulationInputs implements ExchangeOwner {
  readonly limits = new SimulatedLimits()
  current: SimulatedExchange | undefined
  readonly #matches: HeaderMatches
  readonly #backends: SimulatedBackends

  constructor(
    resources: readonly VersionedResource[],
    { assumedBackend }: SimulatorOptions,
    matches: HeaderMatches,
  ) {
    this.#matches = matches
    this.#backends = new SimulatedBackends(resources, assumedBackend)
  }

  begin(exchange: SimulatedExchange): void {
    this.current = exchange
    this.limits.begin(exchange.input)
  }

  judgeWith(judgeUse: DataPlane['judgeUse'], steps: StepRunner): void {
    this.#backends.judgeUse = judgeUse
    this.#backends.onRefusal = (...refusal) => steps.refuse(...refusal)
  }

  end(): void {
    this.current = undefined
  }

  draw(): number {
    return this.current === undefined ? 0 : this.#backends.draw(this.current)
  }

  onPlace(exchange: SimulatedExchange): SimulatedVerdict | undefined {
    const problem = this.#matches.problemOf(exchange)
    return problem === undefined ? undefined : { verdict: 'undecided', reason: `route: ${problem}` }
  }

  onBackend(exchange: SimulatedExchange): SimulatedVerdict | undefined {
    return this.#backends.decide(exchange)
  }

  findValue(header: SimulatedHeader): string | undefined {
    return this.#matches.findValue(header)
  }
}

function summaryOf(request: SimulatedRequest, port: number | undefined): Simulation['request'] {
  const { method, host, path, query, scheme, recorded } = request
  return {
    ...(recorded !== undefined && { id: recorded.id }),
    method,
    host,
    path,
    ...(query !== undefined && { query }),
    scheme,
    ...(port !== undefined && { port }),
  }
}

/** Returns the objects that the request matched. */
function placeOf({ context, backendProblem }: SimulatedExchange): Partial<SimulatedOutcome> {
  const place = context?.placement?.place ?? context?.listener?.place
  if (context === undefined || place === undefined) return {}
  const { gateway, listener } = place
  const rule = context.placement?.rule.resource
  const backend = backendProblem === undefined ? context.backend?.label : undefined
  return {
    gateway,
    listener,
    ...(rule !== undefined && { route: objectText(rule.route), rule: rule.ruleIndex }),
    ...(backend !== undefined && { backend }),
  }
}

/** Returns what the upstream adds to the outcome. Only a record with the same backend shows it. */
function resultOf(
  { context, input: { recorded } }: SimulatedExchange,
  { verdict }: SimulatedVerdict,
): Partial<SimulatedOutcome> {
  if (verdict !== 'forward' || context === undefined) return {}
  const computed = providerOf(context)
  const isSame = recorded !== undefined && recorded.route.backend === context.backend?.label
  if (!isSame || !reachedBackend(recorded)) {
    return computed === undefined ? {} : { provider: computed }
  }
  const provider = computed ?? recorded.details[providerField]
  return {
    status: recorded.response.status,
    ...(provider !== undefined && { provider: String(provider) }),
  }
}
