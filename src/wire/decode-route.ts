/** The route part of `decode.ts`: rules with their matches, filters and backends. */
import type {
  Attachment as AttachmentMessage,
  BackendTarget as BackendTargetMessage,
  HeaderChanges as HeaderChangesMessage,
  NamedMatch as NamedMatchMessage,
  PathModifier as PathModifierMessage,
  RouteFilter as RouteFilterMessage,
  RouteMatch as RouteMatchMessage,
  Route as RouteMessage,
  SessionPersistence as SessionPersistenceMessage,
  Stream as StreamMessage,
  WeightedBackend as WeightedBackendMessage,
} from '../../proto/gen/resource_pb.ts'
import { exactList, Repeated, sharedText } from '../base/repeated.ts'
import type { Age, ObjectRef } from '../model/names.ts'
import type {
  Attachment,
  BackendTarget,
  HeaderChanges,
  HeaderValue,
  NamedMatch,
  PathModifier,
  ResourceKey,
  RouteFilter,
  RouteMatch,
  RouteResource,
  SessionPersistence,
  StreamResource,
  WeightedBackend,
} from '../model/resources.ts'
import { oneOf, present, Unreadable } from './unreadable.ts'

const pathTypes = ['Exact', 'PathPrefix', 'RegularExpression'] as const
const matchTypes = ['Exact', 'RegularExpression'] as const
const carriers = ['Cookie', 'Header'] as const
const modifierTypes = ['ReplaceFullPath', 'ReplacePrefixMatch'] as const

const decodeNamed = ({ name, type, value }: NamedMatchMessage): NamedMatch => ({
  name: sharedText(name),
  type: oneOf(matchTypes, type, 'match type'),
  value,
})

function decodeMatch(message: RouteMatchMessage): RouteMatch {
  const path = present(message.path, 'path')
  return {
    path: { type: oneOf(pathTypes, path.type, 'path match type'), value: path.value },
    headers: exactList(message.headers, decodeNamed),
    query: exactList(message.query, decodeNamed),
    ...(message.method !== undefined && { method: sharedText(message.method) }),
  }
}

const decodeHeader = ({ name, value }: HeaderValue): HeaderValue => ({
  name: sharedText(name),
  value,
})

const decodeChanges = ({ set, add, remove }: HeaderChangesMessage): HeaderChanges => ({
  set: exactList(set, decodeHeader),
  add: exactList(add, decodeHeader),
  remove: exactList(remove, sharedText),
})

const decodeModifier = ({ type, value }: PathModifierMessage): PathModifier => ({
  type: oneOf(modifierTypes, type, 'path modifier type'),
  value,
})

const targets = new Repeated<BackendTarget>()

function decodeTarget(message: BackendTargetMessage | undefined): BackendTarget {
  const { kind, pool } = present(message, 'target')
  if (pool !== undefined) return { type: 'pool', namespace: pool.namespace, name: pool.name }
  switch (kind.case) {
    case 'service': {
      const { namespace, name, port } = kind.value
      const identity = JSON.stringify([namespace, name, port])
      return targets.share(identity, { type: 'service', namespace, name, port })
    }
    case 'backend': {
      const { namespace, name } = kind.value
      return targets.share(JSON.stringify([namespace, name]), { type: 'backend', namespace, name })
    }
    case 'invalid':
      return { type: 'invalid', reason: kind.value.reason, message: kind.value.message }
    default:
      throw new Unreadable('a backend reference of a type that this version does not know')
  }
}

function decodeFilter({ kind }: RouteFilterMessage): RouteFilter {
  switch (kind.case) {
    case 'requestHeaders':
    case 'responseHeaders':
      return { type: kind.case, changes: decodeChanges(kind.value) }
    case 'redirect': {
      const { scheme, hostname, path, port, statusCode } = kind.value
      return {
        type: 'redirect',
        ...(scheme !== undefined && { scheme }),
        ...(hostname !== undefined && { hostname }),
        ...(path !== undefined && { path: decodeModifier(path) }),
        ...(port !== undefined && { port }),
        statusCode,
      }
    }
    case 'rewrite': {
      const { hostname, path } = kind.value
      return {
        type: 'rewrite',
        ...(hostname !== undefined && { hostname }),
        ...(path !== undefined && { path: decodeModifier(path) }),
      }
    }
    case 'mirror': {
      const { target, numerator, denominator } = kind.value
      return { type: 'mirror', target: decodeTarget(target), numerator, denominator }
    }
    default:
      throw new Unreadable('a filter of a type that this version does not know')
  }
}

const decodeWeighted = (message: WeightedBackendMessage): WeightedBackend => ({
  weight: message.weight,
  target: decodeTarget(message.target),
  filters: exactList(message.filters, decodeFilter),
})

const plainLists = new Repeated<readonly WeightedBackend[]>()

/** Thousands of rules lead to the same backends. */
function decodeBackends(messages: readonly WeightedBackendMessage[]): readonly WeightedBackend[] {
  const backends = exactList(messages, decodeWeighted)
  if (backends.some(({ filters }) => filters.length > 0)) return backends
  return plainLists.share(JSON.stringify(backends), backends)
}

const lists = new Repeated<readonly Attachment[]>()

/** Rules of one route have the same. */
function decodeAttachments(messages: readonly AttachmentMessage[]): readonly Attachment[] {
  const identity = messages.map(({ listener, hostnames }) => [listener, hostnames])
  const decode = ({ listener, hostnames }: AttachmentMessage): Attachment => ({
    listener: sharedText(listener),
    hostnames: exactList(hostnames, (hostname) => hostname),
  })
  return lists.share(JSON.stringify(identity), exactList(messages, decode))
}

export function decodeStream(
  key: ResourceKey,
  message: StreamMessage,
  route: ObjectRef,
  age: Age,
): StreamResource {
  const { ruleName, attachments, backends } = message
  return {
    type: 'stream',
    key,
    route,
    ...age,
    ...(ruleName !== undefined && { ruleName }),
    attachments: decodeAttachments(attachments),
    backends: backends.map(({ weight, target }) => ({ weight, target: decodeTarget(target) })),
  }
}

export function decodeRoute(
  key: ResourceKey,
  message: RouteMessage,
  route: ObjectRef,
  age: Age,
): RouteResource {
  const { ruleName, requestTimeoutMs, backendTimeoutMs, session, unusable } = message
  return {
    type: 'route',
    key,
    route,
    created: age.created,
    order: age.order,
    ruleIndex: message.ruleIndex,
    attachments: decodeAttachments(message.attachments),
    matches: exactList(message.matches, decodeMatch),
    filters: exactList(message.filters, decodeFilter),
    backends: decodeBackends(message.backends),
    ...(ruleName !== undefined && { ruleName: sharedText(ruleName) }),
    ...(requestTimeoutMs !== undefined && { requestTimeoutMs: Number(requestTimeoutMs) }),
    ...(backendTimeoutMs !== undefined && { backendTimeoutMs: Number(backendTimeoutMs) }),
    ...(session !== undefined && { session: decodeSession(session) }),
    ...(unusable !== undefined && { unusable }),
  }
}

function decodeSession(message: SessionPersistenceMessage): SessionPersistence {
  const { name, absoluteTimeoutMs, isPermanent } = message
  return {
    carrier: oneOf(carriers, message.carrier, 'carrier of sessions'),
    name,
    ...(absoluteTimeoutMs !== undefined && { absoluteTimeoutMs: Number(absoluteTimeoutMs) }),
    isPermanent,
  }
}
