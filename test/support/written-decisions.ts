/** Writes decision records in the format of a proxy, without running one. */
import { type BlockSink, DecisionLog } from '../../src/past/decisions/decision-log.ts'
import { blockFields, decisionFields } from '../../src/past/decisions/fields.ts'
import { FileRing } from '../../src/past/decisions/ring.ts'

interface WrittenDecision {
  readonly id: string
  readonly path?: string
  readonly status?: number
  /** Milliseconds after the time of the block. */
  readonly startedMs?: number
  readonly durationMs?: number
  /** `namespace/name`. */
  readonly gateway?: string
}

export const openDecisionLog = (sink: BlockSink, now = () => Date.now(), worker = 2): DecisionLog =>
  new DecisionLog({ proxy: 'edge-1', worker, sink, digestKey: 'k', share: 0, now })

/** Writes one decision about a route; false if it is lost. */
export function writeDecision(log: DecisionLog, written: WrittenDecision): boolean {
  const { id, path = '/cart', status = 403, startedMs = -1.5, durationMs = 0, gateway } = written
  const block = log.block()
  if (block === undefined) return false
  const method = block.shared(blockFields.texts, 'GET')
  const route = block.shared(blockFields.texts, 'HTTPRoute default/shop')
  const place = gateway === undefined ? 0 : block.shared(blockFields.texts, gateway)
  const at = block.begin(blockFields.decisions)
  block.text(decisionFields.id, id)
  block.sint(decisionFields.startedUs, startedMs * 1000)
  block.uint(decisionFields.position, 2 ** 40)
  block.uint(decisionFields.method, method)
  block.text(decisionFields.path, path)
  block.text(decisionFields.source, '[::1]:4711')
  block.uint(decisionFields.httpVersion, 20)
  if (gateway !== undefined) block.uint(decisionFields.gateway, place)
  block.uint(decisionFields.route, route)
  block.uint(decisionFields.rule, 1)
  block.uint(decisionFields.status, status)
  block.uint(decisionFields.durationUs, durationMs * 1000)
  block.end(at)
  return true
}

/** Writes the file of a ring for each list of decisions. */
export async function writeDecisionFiles(
  folder: string,
  lists: readonly (readonly WrittenDecision[])[],
  now?: () => number,
): Promise<void> {
  for (const [worker, list] of lists.entries()) {
    const ring = new FileRing({ folder, name: `worker-${worker}`, mostBytes: 1 << 20 })
    const log = openDecisionLog(ring, now, worker)
    for (const written of list) writeDecision(log, written)
    log.stop()
    await ring.close()
  }
}
