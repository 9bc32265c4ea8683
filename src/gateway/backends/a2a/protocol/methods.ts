/** The methods of A2A by their names in version 1.0, and how versions and bindings write them. */

export const a2aMethods = [
  'GetAgentCard',
  'GetExtendedAgentCard',
  'SendMessage',
  'SendStreamingMessage',
  'GetTask',
  'ListTasks',
  'CancelTask',
  'SubscribeToTask',
  'CreateTaskPushNotificationConfig',
  'GetTaskPushNotificationConfig',
  'ListTaskPushNotificationConfigs',
  'DeleteTaskPushNotificationConfig',
] as const
export type A2aMethod = (typeof a2aMethods)[number]

/** Names in JSON-RPC and gRPC that differ from those of version 1.0. */
const otherNames: Readonly<Record<string, A2aMethod>> = {
  'agent/getAuthenticatedExtendedCard': 'GetExtendedAgentCard',
  'message/send': 'SendMessage',
  'message/stream': 'SendStreamingMessage',
  'tasks/get': 'GetTask',
  'tasks/list': 'ListTasks',
  'tasks/cancel': 'CancelTask',
  'tasks/resubscribe': 'SubscribeToTask',
  'tasks/pushNotificationConfig/set': 'CreateTaskPushNotificationConfig',
  'tasks/pushNotificationConfig/get': 'GetTaskPushNotificationConfig',
  'tasks/pushNotificationConfig/list': 'ListTaskPushNotificationConfigs',
  'tasks/pushNotificationConfig/delete': 'DeleteTaskPushNotificationConfig',
  TaskSubscription: 'SubscribeToTask',
  ListTaskPushNotificationConfig: 'ListTaskPushNotificationConfigs',
  GetAgentCard: 'GetExtendedAgentCard',
}

/** The card has no method in JSON-RPC and gRPC. */
const names: ReadonlySet<string> = new Set(a2aMethods.filter((name) => name !== 'GetAgentCard'))

const isMethod = (name: string): name is A2aMethod => names.has(name)

/** Returns the method of a name in JSON-RPC or gRPC; undefined if A2A does not define it. */
export function methodNamed(name: string): A2aMethod | undefined {
  if (Object.hasOwn(otherNames, name)) return otherNames[name]
  return isMethod(name) ? name : undefined
}

/** A request of the binding HTTP+JSON, or for the card. */
interface PathMethod {
  readonly method: A2aMethod
  readonly taskId?: string
  readonly tenant?: string
}

type Row = readonly [verb: string, pattern: RegExp, method: A2aMethod]

/** Ends of paths, without the slash before them. A task id has no slash and, for actions, no colon. */
const rows: readonly Row[] = [
  ['GET', /^extendedAgentCard$/, 'GetExtendedAgentCard'],
  ['POST', /^message:send$/, 'SendMessage'],
  ['POST', /^message:stream$/, 'SendStreamingMessage'],
  ['GET', /^tasks$/, 'ListTasks'],
  ['GET', /^tasks\/([^/]+):subscribe$/, 'SubscribeToTask'],
  ['POST', /^tasks\/([^/]+):subscribe$/, 'SubscribeToTask'],
  ['POST', /^tasks\/([^/]+):cancel$/, 'CancelTask'],
  ['GET', /^tasks\/([^/]+)$/, 'GetTask'],
  ['POST', /^tasks\/([^/]+)\/pushNotificationConfigs$/, 'CreateTaskPushNotificationConfig'],
  ['GET', /^tasks\/([^/]+)\/pushNotificationConfigs$/, 'ListTaskPushNotificationConfigs'],
  ['GET', /^tasks\/([^/]+)\/pushNotificationConfigs\/[^/]+$/, 'GetTaskPushNotificationConfig'],
  [
    'DELETE',
    /^tasks\/([^/]+)\/pushNotificationConfigs\/[^/]+$/,
    'DeleteTaskPushNotificationConfig',
  ],
]

const cardPath = /\/(?:agent-card|agent)\.json$/
/** Version 0.3 has the extended card there in the binding HTTP+JSON. */
const olderCardPath = /\/v1\/card$/
/** Maximum number of segments of a resource. */
const maxSegments = 4

/** Returns the method of a path, which is decoded; undefined if it has none. `verb` is the HTTP method. */
export function methodOfPath(verb: string, path: string): PathMethod | undefined {
  if (verb === 'GET' && cardPath.test(path)) return { method: 'GetAgentCard' }
  if (verb === 'GET' && olderCardPath.test(path)) return { method: 'GetExtendedAgentCard' }
  const segments = path.split('/')
  for (let count = Math.min(maxSegments, segments.length - 1); count > 0; count--) {
    const end = segments.slice(-count).join('/')
    for (const [expected, pattern, method] of rows) {
      const [isFound, taskId] = (expected === verb && pattern.exec(end)) || []
      if (isFound !== undefined) return { method, ...(taskId !== undefined && { taskId }) }
    }
  }
  return undefined
}
