/** Defects of MCP to put into the code on purpose. Most take back a repair. */
import type { Mutation } from '../../virtual-time/mutate.ts'

const folder = 'src/gateway/backends/mcp'

export const mcpMutations: Readonly<Record<string, Mutation>> = {
  'another principal continues a session of MCP': {
    file: `${folder}/proxy/upstream/client-session.ts`,
    from: 'if (state.principal !== exchange.principal) return lostSession(otherClient)',
    to: '',
  },
  'a call of a tool reaches its server against the rules': {
    file: `${folder}/proxy/exchange/mcp-exchange.ts`,
    from: 'return refusal === undefined',
    to: 'return true',
  },
  'a list has tools that the rules hide': {
    file: `${folder}/proxy/relay/item-filter.ts`,
    from: 'if (refusal === undefined) return true',
    to: 'if (refusal !== null) return true',
  },
  'a server of several gets the credentials of the client': {
    file: `${folder}/proxy/transport/target-request.ts`,
    from: "if (only === undefined) return 'all that may identify'",
    to: '',
  },
  'clients without a session share one at the server': {
    file: `${folder}/proxy/upstream/modern-client.ts`,
    from: 'if (begun.session.id === undefined) {',
    to: 'if (begun !== undefined) {',
  },
  'a refused stream counts as the end of a session': {
    file: `${folder}/proxy/upstream/client-session.ts`,
    from: 'if (isTaken) throw',
    to: "if (isTaken && what !== 'stream') throw",
  },
  'the error of a call that is refused with 400 is lost': {
    file: `${folder}/proxy/target/transport.ts`,
    from: 'return ownError(httpResponse, id)\n}\n\n/** Returns the error response with',
    to: 'return undefined\n}\n\n/** Returns the error response with',
  },
  'the error of a refused call keeps the id of the gateway': {
    file: `${folder}/proxy/upstream/input-required-call.ts`,
    from: 'if (response !== undefined && !isErrorOfModern(response)) this',
    to: 'if (response === null) this',
  },
  'the body of an accepted notification must be a message': {
    file: `${folder}/proxy/target/response-reader.ts`,
    from: 'if (this.#ignoresBody) {',
    to: 'if (this.#ignoresBody && status !== 200) {',
  },
  'a stream that is closed to be polled is not resumed': {
    file: `${folder}/proxy/transport/streamable.ts`,
    from: 'if (this.clientResumes ||',
    to: 'if (this.era !== undefined ||',
  },
  'an answer to a server has no target': {
    file: `${folder}/naming.ts`,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a line of the source
    from: 'JSON.stringify(`${target}:${id}`)',
    to: 'id',
  },
  'an id in another form is the id of no request': {
    file: `${folder}/message.ts`,
    from: 'plainId(response.id) !== plainId(id)',
    to: 'response.id !== id',
  },
  'streams of MCP are silent while a server works': {
    file: `${folder}/proxy/exchange/message-stream.ts`,
    from: 'if (this.#stream !== undefined && !this.#stream.isSlow) this.#write(comment)',
    to: '',
  },
  'sessions of single requests are not ended': {
    file: `${folder}/proxy/client/post.ts`,
    from: 'return backend.isStateless ? endEverywhere(session) : undefined',
    to: 'return undefined',
  },
  'an ended session can be continued': {
    file: `${folder}/proxy/mcp-call.ts`,
    from: 'exchange.shared.end(session.state)',
    to: '',
  },
  'a worker that has served no session continues an ended one': {
    file: `${folder}/proxy/session/shared-state.ts`,
    from: 'this.#channel.open()',
    to: '',
  },
  'an answer is sent to the session that replaces the one which has asked': {
    file: `${folder}/proxy/upstream/client-session.ts`,
    from: "if (what === 'response') throw lostInSession('the question is lost')",
    to: '',
  },
  'subscriptions are lost with the session of a server': {
    file: `${folder}/proxy/upstream/client-session.ts`,
    from: 'const uris = await this.#replay(entry, session)',
    to: 'const uris: string[] = []',
  },
  'each worker begins a lost session again': {
    file: `${folder}/proxy/session/target-sessions.ts`,
    from: 'this.#channel.publish({ client, target, session })',
    to: 'this.#keep({ client, target, session })',
  },
  'URIs of resources are those of their server': {
    file: `${folder}/naming.ts`,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a line of the source
    from: ': `${target}+${uri}`',
    to: ': uri',
  },
  'other workers continue an ended session': {
    file: `${folder}/proxy/session/shared-state.ts`,
    from: 'this.#channel.publish({ ended: id })',
    to: 'this.#noteEnd(id)',
  },
  'a call of a tool is sent again': {
    file: `${folder}/proxy/transport/target-request.ts`,
    from: 'this.isOnce =\n',
    to: 'this.isOnce = false &&\n',
  },
}
