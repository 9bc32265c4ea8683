/**
 * Defects to put into the code on purpose, which the simulation must find. Most take back the repair of a defect
 * that users or searches have found. Sources are changed while they are loaded; files stay as they are.
 */
import type { Mutation } from '../virtual-time/mutate.ts'
import { mcpMutations } from './mcp/mutations.ts'

export const mutations: Readonly<Record<string, Mutation>> = {
  'a head is not copied before its memory is read into again': {
    file: 'src/engines/http/http1/upstream-connection.ts',
    from: 'this.#loan?.end()',
    to: '',
  },
  'a head of HTTP/2 is not copied before its memory is read into again': {
    file: 'src/engines/http/http2/upstream-stream.ts',
    from: 'handler.responseHead.borrow(reader, reader.textLoan, reader.textStart)',
    to: 'handler.responseHead.load(reader, reader.textLoan.memory, reader.textStart)',
  },
  'data are sent beyond the window of a stream': {
    file: 'src/engines/http/http2/output.ts',
    from: 'Math.min(this.sendWindow, connection.sendWindow, connection.peerFrameSize)',
    to: 'Math.min(connection.sendWindow, connection.peerFrameSize)',
  },
  'requests that may have been processed are sent again': {
    file: 'src/engines/http/upstream/attempt.ts',
    from: 'this.#sender.isIdempotent)) return false',
    to: 'true)) return false',
  },
  'a cut body ends like a whole one': {
    file: 'src/engines/http/exchange/exchange-body.ts',
    from: 'this.fail(error)',
    to: "this.finish('')",
  },
  'authorization lets everything pass': {
    file: 'src/gateway/policies/authorization/apply.ts',
    from: 'if (detail === undefined) return next',
    to: 'if (detail !== null) return next',
  },
  'guards take parts of users for reasoning': {
    file: 'assembly/texts/content.ts',
    from: 'maskObject(i)\n    isAssistant = false',
    to: 'isAssistant = true\n    maskObject(i)\n    isAssistant = false',
  },
  'errors quote responses that guards could not read': {
    file: 'src/engines/messages/response/provider-error.ts',
    from: 'if (isGuarded || !(error',
    to: 'if (!(error',
  },
  'compactions are not counted': {
    file: 'src/engines/messages/formats/messages/usage.ts',
    from: "listAt(usage, 'iterations').filter(isCompaction)",
    to: "listAt(usage, 'iterations').filter(() => false)",
  },
  'texts that a stream repeats are not masked': {
    file: 'src/engines/messages/mask/stream-guard.ts',
    from: 'return this.#rewriter.push(bytes)',
    to: "return bytes.includes('response.completed') ? bytes : this.#rewriter.push(bytes)",
  },
  'a rule reads only the joined value of a header of several lines': {
    file: 'src/gateway/variables/expression.ts',
    from: 'return lineReading.lines === 1 || decides(joined)',
    to: 'return lineReading.lines >= 1 || decides(joined)',
  },
  'guards take the first reason of an end for the end of a stream': {
    file: 'assembly/texts/stream.ts',
    from: 'export function stop(first: i32): void {',
    to: 'export function stop(first: i32): void { if (failure == 0) return completeRuns(first, -1, false)',
  },
  'a scope is not applied': {
    file: 'src/engines/messages/mask/scoped-texts.ts',
    from: 'place === undefined || scope.has(place) ? map(texts, isContent, place) : texts',
    to: 'map(texts, isContent, place)',
  },
  'guards do not read streams': {
    file: 'src/engines/messages/mask/stream-guard.ts',
    from: 'return this.#rewriter.push(bytes)',
    to: 'return bytes',
  },
  'a processor that is lost lets the response pass': {
    file: 'src/gateway/policies/ext-proc/apply.ts',
    from: 'processing.hasPassed',
    to: 'processing.isOver',
  },
  'a processor gets trailers that it has not asked for': {
    file: 'src/gateway/policies/ext-proc/processing.ts',
    from: 'side.sendsTrailers = modes.sendsTrailers && !this.#isPicker',
    to: '',
  },
  'the refusal of a processor passes through the translation of a stream': {
    file: 'src/ground/exchange/take-over.ts',
    from: "bytesOf(replacement.body ?? ''), true)",
    to: "bytesOf(replacement.body ?? ''))",
  },
  'records forget the policies of a response that fails': {
    file: 'src/gateway/proxy/request/response.ts',
    from: 'context.steps.isResponseDone = true',
    to: 'context.steps.postRoutingDone = 0',
  },
  'calls of processors are reset when they are over': {
    file: 'src/gateway/policies/ext-proc/processing.ts',
    from: 'this.#stream.end()',
    to: 'this.#stream.close()',
  },
  'an answer of a processor with an unknown status counts as consent': {
    file: 'src/gateway/policies/ext-proc/understood.ts',
    from: 'status !== 0 && status !== continueAndReplace',
    to: 'status < 0',
  },
  'every success of an authorization service allows a request': {
    file: 'src/gateway/policies/ext-auth/http.ts',
    from: 'response.status === 200',
    to: 'response.status < 300',
  },
  'an authorization of a later version counts as consent': {
    file: 'src/gateway/policies/ext-auth/grpc.ts',
    from: '$unknown !== undefined',
    to: '$unknown === null',
  },
  'clients forge what authorization services set': {
    file: 'src/gateway/policies/ext-auth/http.ts',
    from: 'if (values.length > 0 || !this.#sent.has(name)) headers.remove(name)',
    to: '',
  },
  'an unknown action of a webhook lets texts pass': {
    file: 'src/gateway/backends/ai/guards/webhook.ts',
    from: "!hasOnly(decision, ['action']) || !hasOnly(action, actionNames)",
    to: '!isObject(action)',
  },
  'a rate limit service is asked again about a request that it may have counted': {
    file: 'src/gateway/policies/rate-limit/global.ts',
    from: 'isOnce: most > 0',
    to: 'isOnce: false',
  },
  'a rate limit service that fails lets requests pass': {
    file: 'src/gateway/policies/rate-limit/global.ts',
    from: 'if (this.#limit.failsOpen !== true) return unavailable(error)',
    to: '',
  },
  'an unknown code of a rate limit service admits a request': {
    file: 'src/gateway/policies/rate-limit/global.ts',
    from: 'if (overallCode !== codes.overLimit) throw',
    to: 'if (overallCode > codes.overLimit) return { status, forRequest: [], forResponse }; if (overallCode !== codes.overLimit) throw',
  },
  'API keys are accepted after they have expired': {
    file: 'src/gateway/policies/api-key-authentication/apply.ts',
    from: 'systemClock.now() >= expiresAt ?',
    to: 'systemClock.now() < 0 ?',
  },
  'mirrors get requests that no policy has let pass': {
    file: 'src/gateway/proxy/phases.ts',
    from: '  chooseBackend,\n',
    to: '  chooseBackend,\n  startMirrors,\n',
  },
  'copies for mirrors are sent again': {
    file: 'src/engines/http/upstream/mirror.ts',
    from: 'isOnce: true',
    to: 'isOnce: false',
  },
  'a local limit counts no requests': {
    file: 'src/gateway/policies/rate-limit/local.ts',
    from: '!bucket.take(1, value)',
    to: 'bucket.take(1, value) === null',
  },
  'tokens are not charged': {
    file: 'src/gateway/backends/ai/call/model-details.ts',
    from: 'if (isBilled && usage !== undefined) {',
    to: 'if (usage === null) {',
  },
  'an admitted request is refused when it fails over': {
    file: 'src/gateway/policies/rate-limit/local.ts',
    from: 'if (isAgain && limit.key?.isLate !== true) continue',
    to: '',
  },
  'a processor that wants nothing of the response may fail it': {
    file: 'src/gateway/policies/ext-proc/processing.ts',
    from: 'if (answered === this.request) this.#endsWhenDone = !wantsAny(this.modes.response)',
    to: '',
  },
  'a write buffer is leased again before it is sent': {
    file: 'src/engines/http/node-handles/handle-writer.ts',
    from: 'this.#await(buffer.length, undefined).buffer = buffer',
    to: 'this.#await(buffer.length, undefined); buffer.release()',
  },
  'a response that follows a lost one passes without its processor': {
    file: 'src/gateway/policies/ext-proc/processing.ts',
    from: 'this.isOver = true\n    this.#stream.end()',
    to: 'this.isOver = true; this.hasPassed = this.#isDone; this.#stream.end()',
  },
  'a session leaves its endpoint': {
    file: 'src/gateway/proxy/phases.ts',
    from: 'retries === 0 ? session?.origin',
    to: 'retries === -1 ? session?.origin',
  },
  'a session outlives its time': {
    file: 'src/gateway/proxy/request/session-persistence.ts',
    from: 'Date.now() - begunAt >= absoluteTimeoutMs',
    to: 'Date.now() < 0',
  },
  'bodies are read on while their receivers are slow': {
    file: 'src/engines/http/message/message-body.ts',
    from: 'if (this.#sink !== undefined) this.blocked = !this.#sink.flush()',
    to: 'this.#sink?.flush()',
  },
  'clients are read on while upstreams are slow': {
    file: 'src/engines/http/http1/downstream-connection.ts',
    from: 'this.transport.pause()',
    to: '',
  },
  'windows are opened again for data that has not been read': {
    file: 'src/engines/http/http2/http2-stream.ts',
    from: 'this.#held.push(bytes, start, end)\n',
    to: 'this.#held.push(bytes, start, end); this.credit(end - start)\n',
  },
  'a changed resource keeps its old version': {
    file: 'src/gateway/proxy/config/store.ts',
    from: 'if (this.#versions.get(key) === version) return',
    to: 'if (this.#versions.has(key)) return',
  },
  'a failed response drops what earlier ones on its connection still send': {
    file: 'src/engines/http/http1/downstream-stream.ts',
    from: 'else if (this.#followsUnsent) this.mustClose = true',
    to: '',
  },
  'a read buffer is not given back': {
    file: 'src/engines/http/bytes/read-buffers.ts',
    from: 'this.inUse--',
    to: '',
  },
  'a socket is reset while its end is pending': {
    file: 'src/engines/http/sockets/transport.ts',
    from: 'socket.writableEnded && !socket.writableFinished && this.backlog === 0',
    to: 'false',
  },
  ...mcpMutations,
}
