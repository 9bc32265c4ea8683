/** Builds the parts of manifests that several readers need. */
import { hash } from 'node:crypto'
import { bareHost } from '../../ground/base/bare-host.ts'
import { gatewayGroup, ownGroup } from '../../ground/model/api-names.ts'
import { type Conversion, compact, type Fields } from './conversion.ts'
import type { SourceField } from './field.ts'

const gatewayVersion = `${gatewayGroup}/v1`
const ownVersion = `${ownGroup}/v1alpha1`

/** Name of the Gateway that is created for sources without one. */
export const gatewayName = 'gateway'

/** Header that carries the choice of a PreRouting policy to the routes. Clients cannot set it. */
export const choiceHeader = 'x-sluice-choice'

/** Adds a Gateway, with one HTTP listener unless others are given. */
export function addGateway(
  result: Conversion,
  origin: SourceField,
  listeners?: readonly Fields[],
  annotations?: Fields,
): void {
  const spec = {
    gatewayClassName: 'agentgateway',
    listeners: listeners ?? [{ name: 'http', port: result.port, protocol: 'HTTP' }],
  }
  result.create(gatewayVersion, 'Gateway', gatewayName, compact({ annotations, spec }), origin)
  if (result.forwarded === undefined) return
  const frontend = { forwarded: result.forwarded }
  result.policy('forwarded-headers', [toGateway], { frontend }, origin)
}

const header = (name: string, value: string): Fields => ({ name, value })

/** Values of the field `frontend.forwarded` of a policy, by what the source does with headers about the client. */
export const forwardedHeaders = {
  /** Headers that the client has sent are replaced. */
  replaced: { headers: 'Replace' },
  /** The address of the client is appended to the list that the client has sent. */
  appended: { headers: 'Append' },
} as const

export const toGateway = { group: gatewayGroup, kind: 'Gateway', name: gatewayName }
export const toRoute = (name: string) => ({ group: gatewayGroup, kind: 'HTTPRoute', name })
export const toBackend = (name: string) => ({ group: ownGroup, kind: 'GatewayBackend', name })

/** Adds a PreRouting policy that writes what an expression chooses to the header that routes match. */
export function addChoice(result: Conversion, label: string, value: string, origin: SourceField) {
  const transformation = { request: { set: [header(choiceHeader, value)] } }
  result.policy(label, [toGateway], { traffic: { phase: 'PreRouting', transformation } }, origin)
}

/** Fields of CORS that several sources have under the same names. */
export const corsFields = (cors: SourceField): Fields => ({
  allowOrigins: cors.list('allowOrigins'),
  allowMethods: cors.list('allowMethods'),
  allowHeaders: cors.list('allowHeaders'),
  exposeHeaders: cors.list('exposeHeaders'),
  allowCredentials: cors.flag('allowCredentials'),
})

const maxRules = 16

/** Adds an HTTPRoute; one with more than 16 rules is divided. Returns the names of the routes. */
export function addRoute(
  result: Conversion,
  name: string,
  { rules, ...spec }: Fields & { readonly rules: readonly Fields[] },
  origin: SourceField,
  annotations: Fields = {},
): string[] {
  const all = rules.flatMap(withOneMatch)
  const count = Math.ceil(all.length / maxRules)
  return Array.from({ length: count }, (_, part) => {
    const partName = part === 0 ? name : result.newName('HTTPRoute', `${name}-${part + 1}`, origin)
    const own = all.slice(part * maxRules, (part + 1) * maxRules)
    const content = compact({ parentRefs: [{ name: gatewayName }], ...spec, rules: own })
    const object = { annotations, spec: content }
    result.create(gatewayVersion, 'HTTPRoute', partName, object, origin)
    return partName
  })
}

/** The Gateway API allows a rule that replaces a prefix one match only, so that it becomes a rule for each match. */
function withOneMatch(rule: Fields): readonly Fields[] {
  const { filters = [], matches = [] } = rule as { filters?: Fields[]; matches?: Fields[] }
  const isReplaced = JSON.stringify(filters).includes('"replacePrefixMatch"')
  if (!isReplaced || matches.length < 2) return [rule]
  return matches.map((match) => ({ ...rule, matches: [match] }))
}

/** Adds a GatewayBackend whose name is made of `label`, and returns a reference to it. */
export function addBackend(result: Conversion, label: string, spec: Fields, origin: SourceField) {
  const name = result.nameOf('GatewayBackend', label)
  result.create(ownVersion, 'GatewayBackend', name, { spec: compact(spec) }, origin)
  return toBackend(name)
}

/** Adds a Secret. */
export function addSecret(
  result: Conversion,
  name: string,
  stringData: Readonly<Record<string, string>>,
  origin: SourceField,
): { name: string } {
  result.create('v1', 'Secret', name, { stringData }, origin)
  return { name }
}

/** Text that a Secret has in place of a value that the source does not contain. */
const placeholder = (variable: string) => `REPLACE_WITH_${variable.replace(/\W+/g, '_')}`

/**
 * Adds a Secret with a credential for a backend, whose value is inline or in an environment variable, and
 * reports it. Credentials with one label and different values get a Secret each. Returns a reference to it.
 */
export function addCredential(
  result: Conversion,
  label: string,
  { key, value, variable }: { key: string; value?: string; variable?: string },
  origin: SourceField,
): { name: string } {
  const content = { [key]: variable === undefined ? (value ?? '') : placeholder(variable) }
  const name = result.secretName(label, content)
  reportCredential(origin, name, key, variable)
  return addSecret(result, name, content, origin)
}

/** Reports the Secret that has a credential, or waits for that of an environment variable. */
export function reportCredential(
  field: SourceField,
  secret: string,
  key: string,
  variable: string | undefined,
): void {
  const reason =
    variable === undefined
      ? `the inline value is now in "${key}" of Secret ${secret}`
      : `Secret ${secret} waits for the value of ${variable}: replace its placeholder in "${key}"`
  field.report('secret', reason)
}

/** A host with its port and scheme. */
export interface Address {
  readonly host: string
  readonly port: number
  readonly isTls: boolean
  /** Path without a final slash; empty for the root. */
  readonly path: string
}

/** Parses `http(s)://host:port/path`; undefined for any other text. */
export function parseAddress(text: string): Address | undefined {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return undefined
  const url = new URL(text)
  const isTls = url.protocol === 'https:'
  const port = Number(url.port) || (isTls ? 443 : 80)
  const host = bareHost(url.hostname)
  return { host, port, isTls, path: url.pathname.replace(/\/+$/, '') }
}

/** Adds a static backend and returns a reference to it. Equal addresses share one backend. */
export function addStatic(
  result: Conversion,
  { host, port, isTls }: Omit<Address, 'path'>,
  origin: SourceField,
  policies: Fields = {},
) {
  const all = compact({ tls: isTls ? {} : undefined, ...policies })
  const isPlain = Object.keys(all).length === (isTls ? 1 : 0)
  const label = isPlain
    ? `${host}-${port}`
    : `${host}-${port}-${hash('sha256', JSON.stringify(all)).slice(0, 6)}`
  const spec = { static: { host, port }, ...(Object.keys(all).length > 0 && { policies: all }) }
  return addBackend(result, label, spec, origin)
}

/** A CEL string. JSON strings are CEL strings. */
export const quote = (text: string): string => JSON.stringify(text)

/** A CEL list of strings. */
export const quoteAll = (texts: readonly string[]): string => `[${texts.map(quote).join(', ')}]`

/** A Gateway API duration of this many milliseconds. */
export function duration(ms: number): string {
  const whole = Math.max(0, Math.round(ms))
  if (whole % 1000 !== 0 && whole <= 99_999) return `${whole}ms`
  const seconds = Math.round(whole / 1000)
  return seconds <= 99_999 ? `${seconds}s` : `${Math.round(seconds / 60)}m`
}

/** Condition that the client's address is in one of the ranges; undefined if one of them is not a range. */
export function sourceIn(ranges: readonly string[]): string | undefined {
  const all = ranges.map((range) => range.trim()).filter((range) => range !== '')
  if (all.length === 0 || !all.every((range) => /^[0-9a-f.:]+(\/\d{1,3})?$/i.test(range)))
    return undefined
  return all
    .map((range) => {
      const bits = range.includes(':') ? 128 : 32
      return `cidr(${quote(range.includes('/') ? range : `${range}/${bits}`)}).containsIP(source.address)`
    })
    .join(' || ')
}
