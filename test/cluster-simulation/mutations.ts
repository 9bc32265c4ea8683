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
    from: 'this.#actors.release(key, takingEffect(snapshot, position))',
    to: 'this.#actors.release(key, snapshot)',
  },
  'a new version of a held object passes unseen': {
    file: 'src/control/actors/protected-changes.ts',
    from: 'if (!this.#isActive || !isHeldVersion(newest) || isSameObject(passed, newest)) {',
    to: 'if (!this.#isActive || !isHeldVersion(newest) || before?.held !== undefined) {',
  },
  'a generation that takes effect again counts as programmed at once': {
    file: 'src/control/actors/listener-owners.ts',
    from: 'return before?.generationSequence === after.generationSequence ? latched : otherGeneration',
    to: 'return latched',
  },
  'the chosen proxies of a rollout without parameters get other changes at once': {
    file: 'src/control/actors/version-stages.ts',
    from: 'if (this.rollouts.isOnlyInCandidate(key)) return',
    to: '',
  },
  'a rollout finishes although its proxies fail': {
    file: 'src/control/plane/rollout/figures.ts',
    from: 'if (comparisons.evidence < 1 / falseAlarmRate) return undefined',
    to: 'return undefined',
  },
  'a rollout finishes although its proxies refuse more requests': {
    file: 'src/control/plane/rollout/kinds.ts',
    from: "Refusals: [shareOf('refused', 'requests were refused'), policyRefusals],",
    to: 'Refusals: [],',
  },
  'a rollout finishes although requests at its proxies cost more': {
    file: 'src/control/plane/rollout/kinds.ts',
    from: '...costBuckets.slice(0, -1).flatMap((_, bucket) => costAbove(bucket)),',
    to: '',
  },
  'a change that was rolled back takes effect': {
    file: 'src/control/actors/rollouts.ts',
    from: "if (outcome === 'RolledBack') {",
    to: "if (outcome === 'RolledBack' && data.author !== undefined) {",
  },
  'a change is in force everywhere with its first step': {
    file: 'src/control/actors/rollouts.ts',
    from: 'if (this.#isCandidate && !this.#versions.isPinned(ref)) this.#versions.pass(key, newest)',
    to: 'if (!this.#versions.isPinned(ref)) this.#versions.pass(key, newest)',
  },
  'a snapshot forgets a pin': {
    file: 'src/control/actors/pin.ts',
    from: 'this.#state = stored?.pin',
    to: 'this.#state = undefined',
  },
  'a snapshot forgets when a pin ends': {
    file: 'src/control/actors/pin.ts',
    from: 'this.#timers.restore(stored?.timers ?? [])',
    to: 'this.#timers.restore([])',
  },
  'a second rollback forgets what waits since the first': {
    file: 'src/control/actors/pin.ts',
    from: 'const newest = before.get(key) ?? this.#actors.get(key) ?? absentResource(refOf(one))',
    to: 'const newest = this.#actors.get(key) ?? absentResource(refOf(one))',
  },
  'an approval releases every held change': {
    file: 'src/control/actors/protected-changes.ts',
    from: 'if (held !== undefined && one.held !== held) continue',
    to: '',
  },
  'a rejected change takes effect': {
    file: 'src/control/actors/protected-changes.ts',
    from: 'this.#held.set(held, { ...change, rejected })',
    to: 'this.#release(held, change.position)',
  },
}
