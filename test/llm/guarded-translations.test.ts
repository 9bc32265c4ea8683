import { expect, it } from 'vitest'
import { Random } from '../fuzz/support/random.ts'
import { checkTranslations, clients } from './guarded-translations.ts'
import { hiddenRequest } from './hidden-texts.ts'

it.each(clients)(
  'guards read every text that a provider gets from a request in the format %s',
  (client) => {
    let sent = 0
    for (let seed = 1; seed <= 1500; seed++) {
      sent += checkTranslations(hiddenRequest(client, new Random(seed)), client)
    }
    expect(sent).toBeGreaterThan(300)
  },
)
