/** `sluice explain request` shows the route that a request would take and the policies that would apply. */

import { type AmbiguousPaths, settledPath } from '../../../gateway/proxy/request/request-path.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import { type ObjectRef, objectKey, objectText } from '../../../ground/model/names.ts'
import { settings } from '../../../ground/settings/index.ts'
import type { OriginOf, TracedField } from '../../../past/explain/effective-policies.ts'
import type { Fold } from '../../../past/replay/index.ts'
import { type RecordingOptions, readState } from '../recording/recording.ts'
import { type CommandResult, exitCode, type Output, UsageError } from '../shared/output.ts'
import type { RouteTrace, TracedRequest } from './route-trace.ts'

export interface ExplainRequestOptions extends RecordingOptions {
  /** Host header of the request: a host name or address with an optional port. */
  readonly host?: string
  /** Path and query; `/` if omitted. */
  readonly path?: string
  /** Method; `GET` if omitted. */
  readonly method?: string
  /** Header fields, each as `name: value`. */
  readonly header?: readonly string[]
  /** Port of the listener; all ports if omitted. */
  readonly port?: string
  /** Value of the proxy setting `ambiguous-paths`; if omitted, the default of the setting. */
  readonly ambiguousPaths?: string
  /** Id of a recorded request, in place of the fields above. */
  readonly id?: string
  /** Folder with decision records. */
  readonly recordDir?: string
}

/** Matches a host name or an address with an optional port (RFC 9110 section 7.2). */
const hostPattern = /^([-\w.~%!$&'()*+,;=]*|\[[\da-fA-F:.]+\])(:\d{1,5})?$/
/** Matches a token (RFC 9110 section 5.6.2), the form of a method. */
const tokenPattern = /^[-!#$%&'*+.^`|~\w]+$/

/** @throws UsageError */
export function readRequest(options: ExplainRequestOptions): TracedRequest {
  const { host, path = '/', method = 'GET', header = [], port } = options
  if (host === undefined) throw new UsageError('explain request needs --host')
  if (!hostPattern.test(host)) throw new UsageError(`--host ${host} is not a host`)
  if (!tokenPattern.test(method)) throw new UsageError(`--method ${method} is not a method`)
  if (!path.startsWith('/')) throw new UsageError(`--path ${path} does not begin with /`)
  if (port !== undefined && !/^\d{1,5}$/.test(port)) {
    throw new UsageError(`--port ${port} is not a port`)
  }
  const headers = header.map((field) => {
    const colon = field.indexOf(':')
    if (colon < 1) throw new UsageError(`--header ${field} is not NAME: VALUE`)
    return [field.slice(0, colon).trim(), field.slice(colon + 1).trim()] as const
  })
  const questionMark = path.indexOf('?')
  return {
    method,
    host: host.toLowerCase(),
    path: questionMark < 0 ? path : path.slice(0, questionMark),
    query: questionMark < 0 ? undefined : path.slice(questionMark + 1),
    headers,
    port: port === undefined ? undefined : Number(port),
  }
}

/** @throws UsageError */
export function readPathRule({ ambiguousPaths }: ExplainRequestOptions): AmbiguousPaths {
  const { read, form, default: byDefault } = settings.ambiguousPaths
  if (ambiguousPaths === undefined) return byDefault
  const rule = read(ambiguousPaths)
  if (rule === undefined) {
    throw new UsageError(`--ambiguous-paths ${ambiguousPaths} is not ${form}`)
  }
  return rule
}

/** The response for a path that the setting `ambiguous-paths` refuses. */
function refusal(request: TracedRequest): CommandResult {
  const { code, row } = new GatewayError('ambiguous_path')
  return {
    text: () => [`answers ${row.status}: ${row.text} (${code})`],
    json: { request, refused: { status: row.status, code, message: row.text }, ways: [] },
    exitCode: exitCode.negative,
  }
}

/** Returns a function that finds the version of an object in force and the event that recorded it. */
function originsOf(fold: Fold): OriginOf {
  return (ref: ObjectRef) => {
    const state = fold.graph.object(objectKey(ref))
    if (state?.object === undefined) return undefined
    return { generation: state.generation, event: state.generationSequence }
  }
}

function originText(origin: ReturnType<OriginOf>): string {
  if (origin === undefined) return ''
  const event = origin.event === undefined ? '' : `, event ${origin.event}`
  return ` (generation ${origin.generation}${event})`
}

function fieldsText(fields: readonly TracedField[], indent: string): string[] {
  return fields.flatMap(({ section, field, phase, policies }) => [
    `${indent}${section}.${field}${phase === 'PreRouting' ? ' before routing' : ''}`,
    ...policies.flatMap(({ policy, attachedTo, state, unenforceable, config, origin }) => {
      const from = `${objectText(policy)}${originText(origin)} on ${attachedTo}`
      const failure = unenforceable === undefined ? '' : `: answers 500, ${unenforceable}`
      const isApplied = state === 'in force' && unenforceable === undefined
      return [
        `${indent}  ${state}: ${from}${failure}`,
        ...(isApplied ? [`${indent}    ${JSON.stringify(config)}`] : []),
      ]
    }),
  ])
}

function tunnelText({ port, isServed }: NonNullable<RouteTrace['tunnel']>): string {
  return isServed
    ? `  the tunnel is a connection to port ${port} of this Gateway`
    : `  answers 403: no listener of this Gateway has port ${port}`
}

function ruleText({ rule, tunnel }: RouteTrace): string[] {
  if (tunnel !== undefined) return [tunnelText(tunnel)]
  if (rule === undefined) return ['  no route matches: 404']
  const above = (rule.delegatedFrom ?? []).map(
    ({ route, ruleIndex, ruleName }) => `  delegated by ${placeText(route, ruleIndex, ruleName)}`,
  )
  const place = placeText(rule.route, rule.index, rule.name)
  const texts = [...above, `  ${place}${originText(rule.origin)}`]
  return rule.unusable === undefined ? texts : [...texts, `  answers 500: ${rule.unusable}`]
}

const placeText = (route: ObjectRef, index: number, name: string | undefined): string =>
  `rule ${index}${name === undefined ? '' : ` (${name})`} of ${objectText(route)}`

function traceText(trace: RouteTrace): string[] {
  const { port, listener, fields, backends } = trace
  const host = listener.hostname === '' ? 'every host' : listener.hostname
  return [
    `port ${port}: listener ${listener.name} of ${objectText(listener.owner)}, ${host}`,
    ...ruleText(trace),
    ...fieldsText(fields, '  '),
    ...backends.flatMap(({ backend, weight, fields: own }) => {
      const [, reason] = /^invalid: (.*)$/.exec(backend) ?? []
      const result = reason === undefined ? `to ${backend}` : `answers 500: ${reason}`
      return [`  ${result}, weight ${weight}`, ...fieldsText(own, '    ')]
    }),
  ]
}

/** The exit code is 1 if the path is refused, no listener matches the host, or no route matches. */
export async function explainRequest(
  options: ExplainRequestOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const asSent = readRequest(options)
  const path = settledPath(asSent.path, readPathRule(options))
  const { fold } = await readState(options, report)
  if (path === undefined) return refusal(asSent)
  const { createIoCore } = await import('../../../engines/core/index.ts')
  const { traceRoutes } = await import('./route-trace.ts')
  const core = createIoCore({ memoryPages: 1_024 })
  const request = { ...asSent, path }
  const ways = traceRoutes(fold.resources(), request, originsOf(fold), core)
  return {
    text: () => [
      ...(path === asSent.path ? [] : [`path ${asSent.path} is normalized to ${path}`]),
      ...(ways.length === 0 ? [`no listener takes the host ${request.host}`] : []),
      ...ways.flatMap(traceText),
    ],
    json: { request, ways },
    exitCode: ways.some(({ rule, tunnel }) => rule !== undefined || tunnel?.isServed === true)
      ? exitCode.success
      : exitCode.negative,
  }
}
