/** What steps may change about a request, for those that did not run because an input is unknown. */
import { configsOf } from '../../gateway/policies/conditional.ts'
import { policiesByName } from '../../gateway/policies/registry.ts'
import type { LocationConfig } from '../../gateway/tokens/location.ts'
import type { PolicyResource } from '../../ground/model/resources.ts'
import type { SimulatedExchange } from './exchange.ts'
import type { LearnedField } from './learned.ts'

export interface StepEffects {
  readonly learned: readonly LearnedField[]
  /** Header fields, or all of them. Pseudo-headers begin with a colon. */
  readonly headers: readonly string[] | 'all'
  /** Whether it may change method, path and body, too. */
  readonly isTotal: boolean
}

/** Whether a step changes header fields, or what policies have learned about a request. */
export const changesRequest = (step: string): boolean =>
  step.startsWith('traffic.') && policiesByName.get(step)?.changesRequest !== false

const nothing: StepEffects = { learned: [], headers: [], isTotal: false }
const everything: StepEffects = { learned: [], headers: 'all', isTotal: true }

/** Marks what a step may have changed as unknown. */
export function doubt(
  { request, requestBody, learned }: SimulatedExchange,
  effects: StepEffects,
  reason: string,
): void {
  for (const field of effects.learned) learned.doubt(field, reason)
  if (effects.headers === 'all') request.headers.doubtAll(reason)
  else for (const name of effects.headers) doubtField(request, name, reason)
  if (!effects.isTotal) return
  request.doubt(reason)
  requestBody.load(undefined)
}

function doubtField(request: SimulatedExchange['request'], name: string, reason: string): void {
  if (name.startsWith(':')) request.doubt(reason)
  else request.headers.doubt(name, reason)
}

export function effectsOf(name: string, policies: readonly PolicyResource[]): StepEffects {
  const configs = policies.flatMap(({ config }) => configsOf(JSON.parse(config)) as Config[])
  switch (name) {
    case 'traffic.jwtAuthentication':
      return {
        ...nothing,
        learned: ['jwt', 'jwtToken'],
        headers: ['dpop', ...credentialFields(configs)],
      }
    case 'traffic.basicAuthentication':
      return { ...nothing, learned: ['basicAuth'], headers: credentialFields(configs) }
    case 'traffic.apiKeyAuthentication':
      return {
        ...nothing,
        learned: ['apiKey', 'apiKeyToken', 'apiKeySource'],
        headers: credentialFields(configs),
      }
    case 'traffic.oidc':
      return { ...nothing, learned: ['jwt', 'jwtToken'], headers: oidcHeaders(configs) }
    case 'traffic.extAuth':
      return {
        learned: ['extauthz', 'authorizedCaller'],
        headers: allowedBy(configs),
        isTotal: false,
      }
    case 'traffic.access':
      return configs.some(({ extAuth }) => extAuth !== undefined) ? everything : nothing
    case 'traffic.identity':
      return { ...nothing, learned: ['ownIdentity'] }
    case 'traffic.extProc':
      return { learned: ['extproc'], headers: 'all', isTotal: true }
    case 'traffic.rateLimit':
      return configs.some(({ global }) => global !== undefined)
        ? { ...nothing, headers: 'all' }
        : nothing
    case 'traffic.transformation':
      return { ...nothing, headers: configs.flatMap(transformedBy) }
    // It needs no unknown input, so that it always runs.
    case 'traffic.headerModifiers':
      return nothing
    default:
      return changesRequest(name) ? everything : nothing
  }
}

/** The parts of compiled policies that name header fields. */
interface Config {
  readonly location?: LocationConfig
  readonly http?: { readonly allowedResponseHeaders: readonly string[] | 'all' }
  readonly global?: object
  readonly extAuth?: object
  readonly forwardIDToken?: string
  readonly request?: {
    readonly add: readonly { readonly name: string }[]
    readonly set: readonly { readonly name: string }[]
    readonly remove: readonly string[]
  }
}

/** The credential is removed from the place where clients send it. */
function credentialFields([config]: readonly Config[]): readonly string[] {
  const { header, queryParameter, cookie } = config?.location ?? {
    header: { name: 'authorization' },
  }
  return [
    ...(header ? [header.name] : []),
    ...(queryParameter ? [':query'] : []),
    ...(cookie ? ['cookie'] : []),
  ]
}

/** The session cookie is removed, and tokens may be added. */
function oidcHeaders([config]: readonly Config[]): readonly string[] {
  return ['cookie', 'authorization', ...(config?.forwardIDToken ? [config.forwardIDToken] : [])]
}

/** Over gRPC, the service may set any field. */
function allowedBy([config]: readonly Config[]): readonly string[] | 'all' {
  return config?.http?.allowedResponseHeaders ?? 'all'
}

function transformedBy({ request }: Config): readonly string[] {
  if (request === undefined) return []
  return [...request.add, ...request.set].map(({ name }) => name).concat(request.remove)
}
