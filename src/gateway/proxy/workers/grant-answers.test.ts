import { afterEach, expect, it, vi } from 'vitest'
import type { GrantStore } from '../../../ground/model/grants.ts'
import { GrantAnswers } from './grant-answers.ts'

const lost = vi.fn()
process.on('unhandledRejection', lost)
afterEach(() => process.off('unhandledRejection', lost))

it('survives a store that cannot be reached', async () => {
  const store: Pick<GrantStore, 'list'> = {
    async list(kind) {
      // The second question fails later than the first one.
      if (kind === 'revoked') await new Promise((resolve) => setImmediate(resolve))
      throw new Error(`no answer about ${kind}`)
    },
  }
  const answers = new GrantAnswers(store as GrantStore, () => {})
  const question = { type: 'grant', id: 1, key: '', revoking: true } as const
  expect(await answers.answer(question)).toEqual({
    type: 'grant',
    id: 1,
    problem: 'no answer about revoking',
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(lost).not.toHaveBeenCalled()
})
