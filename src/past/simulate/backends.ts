/** What happens to a simulated request at its backend, which may need inputs that are unknown. */
import { isIP } from 'node:net'
import type { CompiledRule } from '../../gateway/proxy/config/rules.ts'
import type { DataPlane } from '../../gateway/proxy/data-plane.ts'
import type { BackendKind, RecordedUse } from '../../gateway/proxy/request/backend-kind.ts'
import type { RequestContext } from '../../gateway/proxy/request/request-context.ts'
import { splitAuthority } from '../../gateway/proxy/upstream/authority.ts'
import { objectText } from '../../ground/model/names.ts'
import type { VersionedResource } from '../../ground/model/resources.ts'
import type { RecordedDecision } from '../decisions/record.ts'
import type { SimulatedExchange, SimulatedVerdict } from './exchange.ts'
import type { StepRunner } from './step-runner.ts'

/** Reasons of responses to requests that could not be sent, or that the backend did not answer. */
const outsideReasons = new Set(['Upstream', 'UpstreamFailure', 'Timeout', 'NoHealthyBackend'])

/** Did the recorded request pass everything before its backend? */
export function reachedBackend({ route, response }: RecordedDecision): boolean {
  return route.endpoint !== undefined || outsideReasons.has(response.reason)
}

const forwarded: SimulatedVerdict = { verdict: 'forward' }

/** Field of the access log with what has refused a message of an MCP client. */
const refusedByField = 'sluice.mcp.refused.by'

/** What the request has used by its record; undefined if it is a batch, or has used no tool or prompt. */
function usedBy(
  { details }: RecordedDecision,
  onArguments: () => undefined,
): RecordedUse | undefined {
  const read = (field: string) => {
    const value = details[field]
    return value === undefined ? undefined : String(value)
  }
  const method = read('mcp.method.name')
  const target = read('mcp.target')
  const tool = read('gen_ai.tool.name')
  const name = tool ?? read('gen_ai.prompt.name')
  if (method === undefined || target === undefined || name === undefined) return undefined
  // Several values are joined with commas, which no method contains.
  if (method.includes(',') || target.includes(',')) return undefined
  const type = tool === undefined ? 'prompt' : 'tool'
  return { method, target, type, name, digest: read('sluice.mcp.item.digest'), onArguments }
}

export class SimulatedBackends {
  readonly #assumed: string | undefined
  /** Judges what a recorded request has used. Set once there is a data plane. */
  judgeUse: DataPlane['judgeUse'] = () => undefined
  /** Adds the step that refuses a request. */
  onRefusal: StepRunner['refuse'] = () => {}
  /** GatewayBackends with a fixed host, and Services with endpoints: every request can be forwarded to them. */
  readonly #plain = new Set<string>()

  constructor(resources: readonly VersionedResource[], assumed: string | undefined) {
    this.#assumed = assumed
    for (const { resource } of resources) {
      if (resource.type === 'backend' && resource.destination.type === 'static') {
        this.#plain.add(`backend ${resource.namespace}/${resource.name}`)
      } else if (resource.type === 'workload' && resource.endpoints.some(({ ready }) => ready)) {
        this.#plain.add(`service ${resource.namespace}/${resource.service}`)
      }
    }
  }

  /** Returns the random number by which a rule chooses the recorded or the assumed backend. */
  draw(exchange: SimulatedExchange): number {
    const { context } = exchange
    const rule = context?.placement?.rule
    if (context === undefined || rule === undefined || context.backend !== undefined) return 0.5
    if (rule.backends.length < 2) return 0
    const assumed = this.#assumed === undefined ? undefined : drawFor(rule, this.#assumed)
    const known = drawAsRecorded(exchange, rule) ?? assumed
    if (known !== undefined) return known
    const names = rule.backends.map(({ label, target }) => label ?? target.type)
    exchange.backendProblem = `backend: chosen at random among ${names.join(', ')}`
    return 0
  }

  /** Returns the verdict if the request ends before the backend gets it. */
  decide(exchange: SimulatedExchange): SimulatedVerdict | undefined {
    const { context, input, unknowns, backendProblem } = exchange
    if (context === undefined) return undefined
    if (backendProblem !== undefined) return this.#anyOf(context, backendProblem)
    const judged = input.recorded && this.#judgeUse(exchange, input.recorded, context)
    if (judged !== undefined) return judged
    if (input.recorded !== undefined && isOutside(exchange, context)) {
      return asRecorded(exchange, input.recorded, context)
    }
    if (isPlain(exchange, context)) return undefined
    // From here on the backend reads the request, and cannot continue without an unknown input.
    unknowns.onRead = (reason) =>
      exchange.decide({ verdict: 'undecided', reason: `backend: ${reason}` })
    if (needOf(exchange) === 'host' && hasName(exchange)) {
      return { verdict: 'undecided', reason: 'backend: the host of the request must be looked up' }
    }
    return undefined
  }

  /** Decides a recorded use of a tool or prompt by the rules; undefined if the record says all that is known. */
  #judgeUse(
    exchange: SimulatedExchange,
    recorded: RecordedDecision,
    context: RequestContext,
  ): SimulatedVerdict | undefined {
    const { unknowns } = exchange
    if (recorded.route.backend !== context.backend?.label) return undefined
    const use = usedBy(recorded, () => unknowns.read('the arguments of the call are not recorded'))
    if (use === undefined) return undefined
    const by = recorded.details[refusedByField]
    const wasRefused = by === 'rules' || by === 'pinning'
    // What else has refused it is as recorded.
    if (by !== undefined && !wasRefused) return undefined
    unknowns.begin()
    const judged = this.judgeUse(context, use)
    const unknown = unknowns.end()
    if (unknown !== undefined) return { verdict: 'undecided', reason: `backend.mcp: ${unknown}` }
    if (judged === undefined) return undefined
    const { refusal, otherSettings } = judged
    if (refusal === undefined) {
      const passed = wasRefused ? forwarded : asRecorded(exchange, recorded, context)
      return { ...passed, otherSettings }
    }
    const { reason, step } = refusal
    const { status } = recorded.response
    this.onRefusal(step, exchange, reason, status)
    return { verdict: 'answer', status, reason, isRefusal: true, otherSettings }
  }

  /** If every backend of the rule forwards every request, only the choice is unknown. */
  #anyOf({ placement }: RequestContext, reason: string): SimulatedVerdict {
    const backends = placement?.rule.backends ?? []
    return backends.every(({ target, name }) => this.#plain.has(`${target.type} ${name}`))
      ? { verdict: 'forward' }
      : { verdict: 'undecided', reason }
  }
}

/** A record without a backend is of an invalid one, if it is of the same rule. */
function drawAsRecorded({ input }: SimulatedExchange, rule: CompiledRule): number | undefined {
  if (input.recorded === undefined) return undefined
  const { backend, route, rule: index } = input.recorded.route
  const { resource } = rule
  const isSame = route === objectText(resource.route) && index === resource.ruleIndex
  return backend === undefined && !isSame ? undefined : drawFor(rule, backend)
}

function drawFor(
  { backends, totalWeight }: CompiledRule,
  wanted: string | undefined,
): number | undefined {
  let before = 0
  for (const { label, weight } of backends) {
    if (label === wanted) return (before + weight / 2) / totalWeight
    before += weight
  }
  return undefined
}

/** What decides whether a backend forwards a request: nothing, bodies and other services, or the host that it names. */
const needs: Readonly<Record<BackendKind['type'], 'nothing' | 'others' | 'host'>> = {
  service: 'nothing',
  static: 'nothing',
  dynamic: 'host',
  ai: 'others',
  mcp: 'others',
  a2a: 'others',
}
const needsByType = new Map<string, (typeof needs)[BackendKind['type']]>([
  ...Object.entries(needs),
  ['unknown', 'nothing'],
])
const needOf = ({ backend }: SimulatedExchange) => backend && needsByType.get(backend.type)

/** Whether the backend forwards every request, whatever is in it. */
const isPlain = (exchange: SimulatedExchange, { backend }: RequestContext): boolean =>
  backend?.target.type !== 'pool' && needOf(exchange) === 'nothing'

/** Whether the outcome depends on a body that is not recorded, or on other services. */
function isOutside(exchange: SimulatedExchange, { backend }: RequestContext): boolean {
  const need = needOf(exchange)
  if (backend?.target.type === 'pool' || need === 'others') return true
  return need === 'host' && hasName(exchange)
}

function hasName({ request }: SimulatedExchange): boolean {
  const host = splitAuthority(request.authority)?.host
  return host !== undefined && isIP(host) === 0
}

/** The recorded outcome at the same backend, unless the recorded request did not get there. */
function asRecorded(
  exchange: SimulatedExchange,
  recorded: RecordedDecision,
  { backend }: RequestContext,
): SimulatedVerdict {
  const { route, response, steps } = recorded
  const isRefused = steps.some(({ step, verdict }) => {
    return verdict === 'answer' && step.startsWith('traffic.')
  })
  if (route.backend === undefined || route.backend !== backend?.label || isRefused) {
    return { verdict: 'undecided', reason: 'backend: the body of the request is not recorded' }
  }
  const reason = response.detail ?? response.error ?? response.reason
  for (const { notes: _, ...step } of steps) {
    if (!step.step.startsWith('backend.')) continue
    const answered = step.verdict === 'answer' ? { status: response.status, reason } : {}
    exchange.steps.push({ ...step, ...answered, basis: 'recorded' })
  }
  if (reachedBackend(recorded)) return { verdict: 'forward' }
  return { verdict: 'answer', status: response.status, reason }
}

/** Field of the access log. */
export const providerField = 'gen_ai.provider.name'

/** The name of the model provider of a request that was computed; undefined if there is none. */
export function providerOf({ call }: RequestContext): string | undefined {
  let provider: string | undefined
  call?.record?.eachField((name, value) => {
    if (name === providerField && value !== undefined) provider = String(value)
  })
  return provider
}
