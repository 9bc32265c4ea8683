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
  name,
  type: oneOf(matchTypes, type, 'match type'),
  value,
})

function decodeMatch(message: RouteMatchMessage): RouteMatch {
  const path = present(message.path, 'path')
  return {
    path: { type: oneOf(pathTypes, path.type, 'path match type'), value: path.value },
    ...(message.method !== undefined && { method: message.method }),
    headers: message.headers.map(decodeNamed),
    query: message.query.map(decodeNamed),
  }
}

const decodeHeader = ({ name, value }: HeaderValue): HeaderValue => ({ name, value })

const decodeChanges = ({ set, add, remove }: HeaderChangesMessage): HeaderChanges => ({
  set: set.map(decodeHeader),
  add: add.map(decodeHeader),
  remove,
})

const decodeModifier = ({ type, value }: PathModifierMessage): PathModifier => ({
  type: oneOf(modifierTypes, type, 'path modifier type'),
  value,
})

function decodeTarget(message: BackendTargetMessage | undefined): BackendTarget {
  const { kind, pool } = present(message, 'target')
  if (pool !== undefined) return { type: 'pool', namespace: pool.namespace, name: pool.name }
  switch (kind.case) {
    case 'service': {
      const { namespace, name, port } = kind.value
      return { type: 'service', namespace, name, port }
    }
    case 'backend':
      return { type: 'backend', namespace: kind.value.namespace, name: kind.value.name }
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
  filters: message.filters.map(decodeFilter),
})

const decodeAttachment = ({ listener, hostnames }: AttachmentMessage): Attachment => ({
  listener,
  hostnames,
})

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
    attachments: attachments.map(decodeAttachment),
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
    ...age,
    ruleIndex: message.ruleIndex,
    ...(ruleName !== undefined && { ruleName }),
    attachments: message.attachments.map(decodeAttachment),
    matches: message.matches.map(decodeMatch),
    filters: message.filters.map(decodeFilter),
    backends: message.backends.map(decodeWeighted),
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
