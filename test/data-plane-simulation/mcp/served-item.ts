/** Resources and prompts at a server of a world, and subscriptions to its resources. */
import type { McpRequest, Rpc } from './request.ts'
import type { McpConnection, ServerSession } from './server.ts'

/** The URI of the only resource of a server, and the name of its only prompt. */
export const uriAt = (server: string): string => `res://${server}/note`
export const promptName = 'summary'
/** The URI by which clients know the resource. */
export const uriFor = (server: string, isOnly: boolean): string =>
  isOnly ? uriAt(server) : `${server}+${uriAt(server)}`

/** Longest time until a resource changes after a client has subscribed to it. */
const changeMs = 2_000

/** Serves a message about resources or prompts. Returns false if it is none. */
export function serveItem(
  connection: McpConnection,
  { id, method, params }: Rpc,
  request: McpRequest | undefined,
  session: ServerSession | undefined,
  complete: object,
): boolean {
  const { plan, owner } = connection.server
  if (!plan.hasItems) return false
  const [uri, party] = [uriAt(plan.name), request?.party.tag ?? '']
  const text = `${request?.tag} at ${plan.name}`
  const expect = (found: unknown, wanted: string) => {
    if (found !== wanted) owner.fail('isolation', `${text}: gets ${method} of ${found}`)
  }
  const reply = (result: object) => {
    connection.replyJson({ id, result: { ...complete, ...result } })
    return true
  }
  switch (method) {
    case 'resources/list':
      return reply({ resources: [{ uri, name: 'note', description: party }] })
    case 'resources/read':
      expect(params?.uri, uri)
      return reply({ contents: [{ uri, text }] })
    case 'prompts/list':
      return reply({ prompts: [{ name: promptName, description: party }] })
    case 'prompts/get':
      expect(params?.name, promptName)
      if (request?.party.plan.isWriter !== true) {
        owner.fail('protection', `${text}: gets a prompt, which the rules refuse`)
      }
      return reply({ messages: [{ role: 'user', content: { type: 'text', text } }] })
    case 'resources/subscribe':
      expect(params?.uri, uri)
      subscribe(connection, uri, session)
      return reply({})
    default:
      return false
  }
}

/** The resource changes later, which the stream of the session reports if it is open. */
function subscribe(connection: McpConnection, uri: string, session: ServerSession | undefined) {
  const { owner, machine } = connection.server
  if (session === undefined) return
  session.subscribed.add(uri)
  owner.world.schedule(machine, owner.random.between(0, changeMs), () => {
    const meta = { 'test/tag': session.party }
    session.notify?.({ method: 'notifications/resources/updated', params: { uri, _meta: meta } })
  })
}
