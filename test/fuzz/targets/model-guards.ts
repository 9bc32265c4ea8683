import { checkTranslations, clients } from '../../llm/guarded-translations.ts'
import { hiddenRequest } from '../../llm/hidden-texts.ts'
import { defineTarget } from '../support/target.ts'

type Request = Readonly<Record<string, unknown>>

export default defineTarget({
  about: 'what a provider gets as text from a guarded request has passed the guards',
  generate: (random) => {
    const client = random.pick(clients)
    return JSON.stringify({ client, body: hiddenRequest(client, random) })
  },
  start: () => ({
    check(input) {
      const { client, body } = parsed(input)
      if (clients.includes(client)) checkTranslations(body, client)
    },
  }),
})

function parsed(input: Buffer): { client: (typeof clients)[number]; body: Request } {
  try {
    return JSON.parse(input.toString('utf8'))
  } catch {
    return { client: 'Completions', body: {} }
  }
}
