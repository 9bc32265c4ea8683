/** Moderation by a server with the format of OpenAI. */
import { booleanAt, listAt, objectAt } from '../../../../../engines/messages/json/json.ts'
import { guardFailure } from '../guard-call.ts'
import type { ModerationServiceConfig } from './config.ts'
import { type GuardService, passes, type Verdict } from './service.ts'
import { piecesOf } from './split.ts'

const limits = { length: 60_000, parts: 64 }

export const moderation: GuardService<ModerationServiceConfig> = {
  masks: () => false,
  host: () => 'api.openai.com',
  split: (texts) => piecesOf(texts, limits),
  call: ({ parts }, _, { model }) => ({
    path: '/v1/moderations',
    body: { input: parts.map(({ content }) => content), model },
  }),
  verdict(answer, { parts }): Verdict {
    const results = listAt(answer, 'results')
    const flags = results.map((result) => booleanAt(result, 'flagged'))
    if (flags.length !== parts.length || flags.includes(undefined)) {
      throw guardFailure('the response of the moderation endpoint has no result for each text')
    }
    if (!flags.includes(true)) return passes
    const matches = results.flatMap((result) => {
      const categories = objectAt(result, 'categories') ?? {}
      return Object.keys(categories).filter((name) => categories[name] === true)
    })
    return { rejects: true, matches }
  },
}
