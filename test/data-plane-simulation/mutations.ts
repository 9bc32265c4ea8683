/**
 * Defects to put into the code on purpose, which the simulation must find. Most take back the repair of a defect
 * that users or searches have found. Sources are changed while they are loaded; files stay as they are.
 */
import type { Mutation } from '../virtual-time/mutate.ts'

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
  'a write buffer is leased again before it is sent': {
    file: 'src/engines/http/node-handles/handle-writer.ts',
    from: 'this.#await(buffer.length, undefined).buffer = buffer',
    to: 'this.#await(buffer.length, undefined); buffer.release()',
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
  'guards do not read streams': {
    file: 'src/engines/messages/mask/stream-guard.ts',
    from: 'return this.#rewriter.push(bytes)',
    to: 'return bytes',
  },
}
