/** Asks targets for their lists, if only these say where a name leads. */
import type { McpItemType } from '../../../../../ground/exchange/mcp.ts'
import { now } from '../../../../proxy/upstream/endpoint.ts'
import { type ListMethod, listMethods } from '../../methods.ts'
import { toFailure } from '../target/target-failure.ts'
import { type McpTargetEntry, TargetMemory } from '../target/targets.ts'
import { SessionEnded } from '../upstream/client-session.ts'
import type { Upstreams } from '../upstream/upstreams.ts'

/** A target that has not answered is not asked again for this time. Until then it has no names. */
const silentMs = 5_000

interface Question {
  readonly askedAt: number
  readonly isAnswered: Promise<void>
}

const questions = new TargetMemory(() => new Map<McpItemType, Question>())

/** Resolves when the targets that may have items of the type have answered or failed. Never rejects. */
export async function learnNames(
  upstreams: Upstreams,
  targets: readonly McpTargetEntry[],
  type: McpItemType,
  ask: (entry: McpTargetEntry, method: ListMethod) => Promise<void>,
): Promise<void> {
  const method = listMethods.find((one) => one.type === type)
  if (method === undefined) return
  const able = targets.filter(
    ({ target }) => upstreams.can(target.name)?.includes(method.member) ?? true,
  )
  const answers = able.map((entry) => {
    const asked = questions.of(entry)
    const last = asked.get(type)
    if (last !== undefined && now() - last.askedAt < silentMs) return last.isAnswered
    const isAnswered = ask(entry, method).catch((thrown: unknown) => {
      if (!(thrown instanceof SessionEnded)) toFailure(thrown)
    })
    asked.set(type, { askedAt: now(), isAnswered })
    return isAnswered
  })
  await Promise.all(answers)
}
