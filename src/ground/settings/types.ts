/** Types of settings: the form that a text must have, and how it is parsed. */
import { isIP } from 'node:net'
import { bareHost } from '../base/bare-host.ts'
import { parseDurationMs } from '../base/duration.ts'
import { isAddressRange } from '../base/ip-address.ts'
import * as shape from '../base/shape.ts'
import type { LabelSelector } from '../model/label-selector.ts'
import { parseLogFilter } from './log-filter.ts'

export interface SettingType<Value> {
  /** The form of a value in words, for the docs and for messages about wrong values. */
  readonly form: string
  /** The value is a comma-separated list. An option that is repeated adds to the list. */
  readonly isList?: true
  /** The value may have a password or a token, so that messages do not show it. */
  readonly isSecret?: true
  /** Parses a text; returns undefined if it does not have the form. */
  readonly read: (text: string) => Value | undefined
}

const type = <Value>(form: string, read: SettingType<Value>['read']): SettingType<Value> => ({
  form,
  read,
})

const matching = (form: string, isValid: (text: string) => boolean): SettingType<string> =>
  type(form, (text) => (isValid(text) ? text : undefined))

const secret = <Value>(one: SettingType<Value>): SettingType<Value> => ({ ...one, isSecret: true })

function isPercentEncoded(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

const list = (
  form: string,
  isValid: (part: string) => boolean,
): SettingType<readonly string[]> => ({
  form,
  isList: true,
  read: (text) => {
    const parts = text.split(',').map((part) => part.trim())
    return parts.every(isValid) ? parts : undefined
  },
})

const integer = (form: string, min: number, max: number): SettingType<number> =>
  type(form, (text) => {
    const value = Number(text)
    const isShort = /^[0-9]+$/.test(text) && text.length <= String(max).length
    return isShort && value >= min && value <= max ? value : undefined
  })

export const text = (form: string) => matching(form, (value) => value.trim() !== '')
/**
 * URL of a Redis-compatible server, or of NATS servers separated by commas; case counts. User and password are
 * percent-encoded.
 */
export const answerServer = secret(
  matching('redis://HOST, rediss://HOST, nats://HOST or tls://HOST', (value) => {
    if (isNatsServer(value)) return isPercentEncoded(value)
    if (!/^rediss?:\/\/[^/?#]+(?:\/\d*)?$/.test(value) || !URL.canParse(value)) return false
    const { username, password } = new URL(value)
    return isPercentEncoded(`${username} ${password}`)
  }),
)

const isNatsServer = (value: string): boolean =>
  /^(?:nats|tls):\/\/[^/?#\s,]+(?:,(?:nats|tls):\/\/[^/?#\s,]+)*$/.test(value)

export const path = text('a path')
/** Paths, whose case counts. */
export const paths: SettingType<readonly string[]> = {
  form: 'comma-separated paths',
  isList: true,
  read: (text) => {
    const parts = text.split(',').map((part) => part.trim())
    return parts.includes('') ? undefined : parts
  },
}
export const host = (form: string) => matching(form, (value) => /^[^\s/]+$/.test(value))

/** A DNS label, as Kubernetes requires it for names of namespaces and Services. */
export const label = (form: string) =>
  matching(form, (value) => /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(value))

export function oneOf<const Word extends string>(...words: Word[]): SettingType<Word> {
  const quoted = words.map((word) => `\`${word}\``)
  const form = `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`
  return type(form, (text) => words.find((word) => word === text))
}

export const boolean = type('`true` or `false`', (text) =>
  text === 'true' ? true : text === 'false' ? false : undefined,
)

/** The ids of the user and the group of a process. */
export const processUser = type('`UID` or `UID:GID`', (text) => {
  const [, uid, gid = uid] = /^([0-9]{1,9})(?::([0-9]{1,9}))?$/.exec(text) ?? []
  return uid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) }
})

export const count = integer('1 to 1000000', 1, 1_000_000)
export const eventCount = integer('a number of events', 0, 999_999_999_999)
export const port = integer('a port', 1, 65_535)
export const rate = integer('bytes per second, 0 to 1000000000', 0, 1_000_000_000)

/** Texts without spaces around them, whose case counts. */
export const texts: SettingType<readonly string[]> = {
  form: 'comma-separated texts',
  isList: true,
  read: paths.read,
}

/** Names of header fields and parameters, in lower case. */
export const names: SettingType<readonly string[]> = {
  form: 'a list of names',
  isList: true,
  read: (text) => {
    const parts = text.split(',').map((part) => part.trim().toLowerCase())
    return parts.every((part) => /^[^\s=&;]+$/.test(part)) ? parts : undefined
  },
}

/** Which decisions to record: none, a weighted sample, or all that fail and a share (0 to 1) of the others. */
export const recordShare = type<'off' | 'sample' | number>(
  '`off`, `sample`, `errors`, a percentage such as `5%`, or `all`',
  (text) => {
    if (text === 'off' || text === 'sample') return text
    if (text === 'errors') return 0
    if (text === 'all') return 1
    const [, percent] = /^(\d{1,3}(?:\.\d+)?)%$/.exec(text) ?? []
    const share = Number(percent) / 100
    return share <= 1 ? share : undefined
  },
)

const workerCount = integer('1 to 256, or `auto`', 1, 256)
export const workers = type<number | 'auto'>(workerCount.form, (text) =>
  text === 'auto' ? text : workerCount.read(text),
)

/** Accepts `host:port` and `:port`; an IPv6 address must be in brackets. */
function isAddress(text: string): boolean {
  const [, digits] = /^(?:\[[0-9A-Fa-f:.]+\]|[^\s:[\]]*):([0-9]{1,5})$/.exec(text) ?? []
  return digits !== undefined && Number(digits) <= 65_535
}

export const listenAddress = matching('`host:port` or `:port`', isAddress)
export const address = matching(
  '`host:port`, `:port` or `off`',
  (text) => text === 'off' || isAddress(text),
)

/** Other addresses are refused: the console shows the configuration, and its connections are not encrypted. */
export const loopbackAddress = matching(
  'a loopback `host:port`, such as `127.0.0.1:0`, or `off`',
  (text) =>
    text === 'off' || (isAddress(text) && /^(?:127(?:\.\d{1,3}){3}|localhost|\[::1\]):/.test(text)),
)

export const controllers = list(
  '`host:port`, or several separated by commas',
  (part) => isAddress(part) && !part.startsWith(':') && !/:0+$/.test(part),
)

/** An address of this machine. Brackets around an IPv6 address are removed. */
export const localAddress = type('an IP address or `localhost`', (text) => {
  if (text === 'localhost') return text
  const bare = bareHost(text)
  return isIP(bare) === 0 ? undefined : bare
})

/** Each range is validated here, so that a typo cannot allow or refuse the wrong addresses. */
export const ranges = list('comma-separated IP addresses and CIDRs', isAddressRange)

/** DNS servers, such as `192.0.2.53`, `[::1]:5353` or `::1`. */
export const nameServers = list(
  'comma-separated IP addresses, each with an optional `:port`',
  (server) => {
    if (isIP(server) !== 0) return true
    const [, bracketed, plain = '', digits = '53'] =
      /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(server) ?? []
    const isValid = bracketed === undefined ? isIP(plain) === 4 : isIP(bracketed) === 6
    return isValid && port.read(digits) !== undefined
  },
)

/** Parses whole seconds or a duration such as `1m30s`; returns milliseconds. */
function readDelay(text: string): number | undefined {
  const [, seconds] = /^([0-9]{1,8})s?$/.exec(text) ?? []
  return seconds === undefined ? parseDurationMs(text) : Number(seconds) * 1_000
}

export const delay = type('seconds, or a duration such as `30s`', readDelay)
export const positiveDelay = type(delay.form, (text) => readDelay(text) || undefined)

/** Maximum lifetime of a session ticket (RFC 8446 section 4.6.1). */
const maxSessionMs = 7 * 24 * 3_600_000

/** A multiple of one second, the unit of ticket lifetimes in TLS. */
export const sessionLifetime = type(
  'whole seconds, or a duration such as `30m`, at most one week',
  (text) => {
    const ms = readDelay(text) ?? 0
    return ms >= 1_000 && ms <= maxSessionMs && ms % 1_000 === 0 ? ms : undefined
  },
)

export const leaseDuration = type('a duration from `1s` to `5m`', (text) => {
  const ms = parseDurationMs(text) ?? 0
  return ms >= 1_000 && ms <= 300_000 ? ms : undefined
})

/** In milliseconds; 0 keeps everything. */
export const retention = type('days such as `400d`, a duration such as `36h`, or `0`', (text) => {
  const [, days] = /^(\d{1,5})d$/.exec(text) ?? []
  return days === undefined ? readDelay(text) : Number(days) * 86_400_000
})

export const logFilter = matching(
  'comma-separated levels, such as `info,sluice::xds=debug`',
  (text) => parseLogFilter(text) !== undefined,
)

/** Other schemes are rejected, because they would be read as a host name. */
export const natsServer = secret(
  matching(
    '`nats://host:port`, or `tls://`',
    (text) =>
      /^(?:nats|tls):\/\/[^\s/]+$/.test(text) && URL.canParse(text) && isPercentEncoded(text),
  ),
)

/** Without user and password, which error messages would show. */
export const webUrl = matching('an `http://` or `https://` URL', (text) => {
  if (!/^https?:\/\/[^\s@]+$/.test(text)) return false
  return URL.canParse(text)
})

/** Names with values, as OpenTelemetry writes them: `NAME=VALUE,…`, with percent-encoded values. */
export const pairs = secret(
  type('a list of `NAME=VALUE`, with percent-encoded values', (text) => {
    const entries = text.split(',').map((part) => /^\s*([^\s=]+)\s*=(.*)$/.exec(part))
    try {
      return Object.fromEntries(
        entries.map((entry) => {
          if (entry === null) throw new URIError()
          return [entry[1] ?? '', decodeURIComponent((entry[2] ?? '').trim())] as const
        }),
      )
    } catch {
      return undefined
    }
  }),
)

export const exportInterval = integer('milliseconds, 100 to 86400000', 100, 86_400_000)

const isObjectName = (text: string) => /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/.test(text)

export const proxyName = matching('a DNS name', isObjectName)

/** Namespace and name of a Kubernetes object. */
export const objectName = type('`namespace/name`', (text) => {
  const [namespace = '', name = '', ...rest] = text.split('/')
  const isValid = rest.length === 0 && isObjectName(namespace) && isObjectName(name)
  return isValid ? { namespace, name } : undefined
})

const json = <Value>(form: string, valueShape: shape.Shape<Value>): SettingType<Value> =>
  type(form, (text) => {
    try {
      const value = JSON.parse(text)
      return shape.problemOf(valueShape, value) === undefined ? (value as Value) : undefined
    } catch {
      return undefined
    }
  })

const expression = shape.where(
  shape.record<NonNullable<LabelSelector['matchExpressions']>[number]>({
    key: shape.text,
    operator: shape.choice('In', 'NotIn', 'Exists', 'DoesNotExist'),
    values: shape.optional(shape.list(shape.text)),
  }),
  'values for In and NotIn only',
  ({ operator, values = [] }) => ['In', 'NotIn'].includes(operator) === values.length > 0,
)

export const selectors = json<readonly LabelSelector[]>(
  'JSON list of label selectors',
  shape.list(
    shape.record({
      matchLabels: shape.optional(shape.map(shape.text)),
      matchExpressions: shape.optional(shape.list(expression)),
    }),
  ),
)

/** Reference to the GatewayParameters of a GatewayClass that the controller creates. */
interface ClassParameters {
  readonly group?: string
  readonly kind?: string
  readonly namespace: string
  readonly name: string
}

const filled = shape.where(shape.text, 'a string that is not empty', (value) => value !== '')

export const classParameters = json(
  'JSON object: class name to `{group, kind, namespace, name}`',
  shape.map(
    shape.record<ClassParameters>({
      group: shape.optional(shape.text),
      kind: shape.optional(shape.text),
      namespace: filled,
      name: filled,
    }),
  ),
)
