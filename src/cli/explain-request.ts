/** `sluice explain request`: which route a request would take, and which policies would hold. */
import { GatewayError } from '../errors/index.ts'
import type { Recorded } from '../log/index.ts'
import type { ObjectRef } from '../model/names.ts'
import { type AmbiguousPaths, settledPath } from '../proxy/request/request-path.ts'
import { type Fold, replay } from '../replay/index.ts'
import { settings } from '../settings/index.ts'
import { type OfflineOptions, readRecording, tellRecording } from './offline.ts'
import { exitCode, type Output, type OutputFormat, UsageError } from './output.ts'
import type { AskedRequest, ExplainedField, ExplainedPolicy, ExplainedWay } from './request-ways.ts'
import { objectText } from './status.ts'

export interface RequestOptions extends OfflineOptions {
  /** Host of the request, with a port or without. */
  readonly host?: string
  /** Path and query; `/` where absent. */
  readonly path?: string
  /** `GET` where absent. */
  readonly method?: string
  /** `name: value`. */
  readonly header?: readonly string[]
  /** Port of the listener; all where absent. */
  readonly port?: string
  /** Value of the setting of the proxy; its default if omitted. */
  readonly ambiguousPaths?: string
}

/** Which version of an object something came from. */
interface Origin {
  readonly generation: number
  /** Position in the log of the event that brought this version; absent for built-in objects. */
  readonly event?: number
}

type WithOrigin<Part> = Part & { readonly origin?: Origin }

interface AnsweredWay extends Omit<ExplainedWay, 'fields' | 'backends' | 'rule'> {
  readonly rule?: WithOrigin<NonNullable<ExplainedWay['rule']>>
  readonly fields: readonly AnsweredField[]
  readonly backends: readonly { backend: string; weight: number; fields: AnsweredField[] }[]
}

interface AnsweredField extends Omit<ExplainedField, 'policies'> {
  readonly policies: readonly WithOrigin<ExplainedPolicy>[]
}

/** A name or address, with a port or without; RFC 9110, section 7.2, as far as listeners take it. */
const hostPattern = /^([-\w.~%!$&'()*+,;=]*|\[[\da-fA-F:.]+\])(:\d{1,5})?$/
/** RFC 9110, section 5.6.2. */
const tokenPattern = /^[-!#$%&'*+.^`|~\w]+$/

/** @throws UsageError */
function askedOf({ host, path = '/', method = 'GET', header = [], port }: RequestOptions) {
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
  const mark = path.indexOf('?')
  return {
    method,
    host: host.toLowerCase(),
    path: mark < 0 ? path : path.slice(0, mark),
    query: mark < 0 ? undefined : path.slice(mark + 1),
    headers,
    port: port === undefined ? undefined : Number(port),
  } satisfies AskedRequest
}

/** @throws UsageError */
function pathRuleOf({ ambiguousPaths }: RequestOptions): AmbiguousPaths {
  const { read, form, default: byDefault } = settings.ambiguousPaths
  if (ambiguousPaths === undefined) return byDefault
  const rule = read(ambiguousPaths)
  if (rule === undefined) {
    throw new UsageError(`--ambiguous-paths ${ambiguousPaths} is not ${form}`)
  }
  return rule
}

/** The answer of the proxy to a path that its setting refuses. */
function refusePath(asked: AskedRequest, format: OutputFormat, output: Output): number {
  const { code, row } = new GatewayError('ambiguous_path')
  const refused = { status: row.status, code, message: row.text }
  if (format === 'json') {
    output.print(JSON.stringify({ request: asked, refused, ways: [] }, undefined, 2))
  } else output.print(`answers ${row.status}: ${row.text} (${code})`)
  return exitCode.no
}

/** The version of each object that is in force, and the event that brought it. */
class Origins {
  readonly #byObject = new Map<string, Origin>()

  constructor(fold: Fold, recorded: readonly Recorded[]) {
    const positions = new Map<string, number>()
    for (const { position, event } of recorded) {
      if (event.type !== 'dev.sluice.resource.applied.v1') continue
      const { kind, namespace, name } = event.data
      positions.set(objectText({ kind, namespace, name }), position)
    }
    for (const { ref, generation, object } of fold.graph.objects()) {
      if (object === undefined) continue
      const event = positions.get(objectText(ref))
      const origin = { generation, ...(event !== undefined && { event }) }
      this.#byObject.set(objectText(ref), origin)
    }
  }

  of(ref: ObjectRef): { origin?: Origin } {
    const origin = this.#byObject.get(objectText(ref))
    return origin === undefined ? {} : { origin }
  }
}

function answered(way: ExplainedWay, origins: Origins): AnsweredWay {
  const fieldsOf = (fields: readonly ExplainedField[]): AnsweredField[] =>
    fields.map((field) => ({
      ...field,
      policies: field.policies.map((one) => ({ ...one, ...origins.of(one.policy) })),
    }))
  const { rule, fields, backends, ...rest } = way
  return {
    ...rest,
    ...(rule !== undefined && { rule: { ...rule, ...origins.of(rule.route) } }),
    fields: fieldsOf(fields),
    backends: backends.map((one) => ({ ...one, fields: fieldsOf(one.fields) })),
  }
}

function originText(origin: Origin | undefined): string {
  if (origin === undefined) return ''
  const event = origin.event === undefined ? '' : `, event ${origin.event}`
  return ` (generation ${origin.generation}${event})`
}

function printFields(fields: readonly AnsweredField[], indent: string, output: Output): void {
  for (const { section, field, phase, policies } of fields) {
    const early = phase === 'PreRouting' ? ' before routing' : ''
    output.print(`${indent}${section}.${field}${early}`)
    for (const { policy, attachedTo, state, unenforceable, config, origin } of policies) {
      const from = `${objectText(policy)}${originText(origin)} on ${attachedTo}`
      const closed = unenforceable === undefined ? '' : `: answers 500, ${unenforceable}`
      output.print(`${indent}  ${state}: ${from}${closed}`)
      if (state === 'in force' && unenforceable === undefined) {
        output.print(`${indent}    ${JSON.stringify(config)}`)
      }
    }
  }
}

function printWay({ port, listener, rule, fields, backends }: AnsweredWay, output: Output): void {
  const host = listener.hostname === '' ? 'every host' : listener.hostname
  output.print(`port ${port}: listener ${listener.name} of ${objectText(listener.owner)}, ${host}`)
  if (rule === undefined) output.print('  no route matches: 404')
  else {
    const name = rule.name === undefined ? '' : ` (${rule.name})`
    output.print(
      `  rule ${rule.index}${name} of ${objectText(rule.route)}${originText(rule.origin)}`,
    )
    if (rule.unusable !== undefined) output.print(`  answers 500: ${rule.unusable}`)
  }
  printFields(fields, '  ', output)
  for (const { backend, weight, fields: own } of backends) {
    const [, reason] = /^invalid: (.*)$/.exec(backend) ?? []
    const end = reason === undefined ? `to ${backend}` : `answers 500: ${reason}`
    output.print(`  ${end}, weight ${weight}`)
    printFields(own, '    ', output)
  }
}

/** Exit code 1 if the path is refused, no listener takes the host, or no route matches. */
export async function explainRequest(
  options: RequestOptions,
  format: OutputFormat,
  output: Output,
): Promise<number> {
  const asked = askedOf(options)
  const path = settledPath(asked.path, pathRuleOf(options))
  const recording = await readRecording(options)
  const { events, extent } = recording
  const { fold } = await replay(events, recording.derivation, extent.base)
  tellRecording(recording, output)
  if (path === undefined) return refusePath(asked, format, output)
  const { createIoCore } = await import('../core/index.ts')
  const { requestWays } = await import('./request-ways.ts')
  const core = createIoCore({ memoryPages: 1_024 })
  const origins = new Origins(fold, events)
  const settled = { ...asked, path }
  const ways = requestWays(fold.resources(), settled, core).map((way) => answered(way, origins))
  if (format === 'json') {
    output.print(JSON.stringify({ request: settled, ways }, undefined, 2))
  } else {
    if (path !== asked.path) output.print(`path ${asked.path} is normalized to ${path}`)
    if (ways.length === 0) output.print(`no listener takes the host ${asked.host}`)
    for (const way of ways) printWay(way, output)
  }
  return ways.some(({ rule }) => rule !== undefined) ? exitCode.fine : exitCode.no
}
