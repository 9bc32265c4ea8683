/**
 * Defects to put into the code on purpose, which the simulation must find. Half of them take back the fix of
 * a defect that it has found. Sources are changed while they are loaded; files stay as they are.
 */
import type { Mutation } from '../virtual-time/mutate.ts'

export const mutations: Readonly<Record<string, Mutation>> = {
  'old leaders are not ignored': {
    file: 'events/epoch.ts',
    from: 'return epoch === 0 && !isWrittenByHolder(type)',
    to: 'return true',
  },
  'events are acknowledged before they are stored': {
    file: 'src/control/log/nats-writer.ts',
    from: 'const { seq } = await persist(attempt, deadline)',
    to: 'attempt().catch(() => undefined); const seq = after + 1',
  },
  'a watch drops the first event after a reconnect': {
    file: 'src/control/watch/kubernetes/kind-watch.ts',
    from: "if (type !== 'BOOKMARK') {",
    to: "if (type !== 'BOOKMARK' && performance.now() - began > 20) {",
  },
  'a proxy answers before its worker has applied the configuration': {
    file: 'src/gateway/proxy/remote/remote-channel.ts',
    from: 'const bytes = assembleSharedDelta(sequence, pieces, removed)',
    to: "this.ack('', sequence); const bytes = assembleSharedDelta(sequence, pieces, removed)",
  },
  'conditions change places with each write': {
    file: 'src/control/status/merge.ts',
    from: 'return [...kept, ...timed.filter((one) => !kept.includes(one))]',
    to: 'return [...kept, ...timed.filter((one) => !kept.includes(one))].reverse()',
  },
  'secret values are not taken out of the log': {
    file: 'src/control/watch/redact.ts',
    from: 'return { apiVersion, kind, metadata, type, immutable, facts }',
    to: 'return { apiVersion, kind, metadata, type, immutable, facts, data: object.data }',
  },
  'a new holder of the lease keeps the epoch': {
    file: 'src/control/lease/lease.ts',
    from: 'const epoch = Math.max(before?.epoch ?? 0, highestEpoch()) + 1',
    to: 'const epoch = Math.max(before?.epoch ?? 0, highestEpoch(), 1)',
  },
  'a generation without a change of content is not recorded': {
    file: 'src/control/watch/kubernetes/differences.ts',
    from: 'isSameGeneration &&',
    to: '',
  },
  'a new leader trusts a watch that lags behind': {
    file: 'src/control/watch/kubernetes/source.ts',
    from: 'if (!index.isListed) return',
    to: 'return',
  },
  'a replica serves proxies that are ahead of it': {
    file: 'src/control/xds/server.ts',
    from: 'const isBehind = await this.#isBehind(request)',
    to: 'const isBehind = false',
  },
  'a proxy stays gone after a late event about its earlier stream': {
    file: 'src/control/plane/control-plane.ts',
    from: 'if (event.type === proxyDisconnected.type) {',
    to: 'if (event.type === proxyDisconnected.type && event.data.replica === this.#identity) {',
  },
  'a judgement of an older version lets the newest one pass': {
    file: 'src/control/actors/protected-changes.ts',
    from: 'if (!objects.every((one) => this.#isNewest(one))) continue',
    to: '',
  },
  'a version that a pin frees counts as programmed before proxies have it': {
    file: 'src/control/actors/pin.ts',
    from: 'for (const [key, snapshot] of newest) this.#actors.set(key, takingEffect(snapshot, position))',
    to: 'for (const [key, snapshot] of newest) this.#actors.set(key, snapshot)',
  },
  'a new version of a held object passes unseen': {
    file: 'src/control/actors/protected-changes.ts',
    from: 'if (!this.#isActive || !isHeldKind(kind) || isSameObject(passed, newest)) {',
    to: 'if (!this.#isActive || !isHeldKind(kind) || before?.held !== undefined) {',
  },
}
