import { describe, expect, it } from 'vitest'
import { Random } from '../fuzz/support/random.ts'
import { useFixture } from '../support/fixture.ts'
import { startVendorA } from '../support/vendors/vendor-a.ts'
import { Ledger } from './ledger.ts'
import { type Bills, canary, completes } from './vendors.ts'

const vendor = useFixture(startVendorA)

/** Sends a chat to the vendor as if the gateway had forwarded it. */
async function chat(model: string, content: string) {
  const ledger = new Ledger()
  const bills: Bills = new Map()
  vendor.answer = completes(ledger, bills, new Random(1))
  const response = await fetch(`http://127.0.0.1:${vendor.port}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content }] }),
  })
  await response.text()
  return { violation: ledger.violation, bills }
}

describe('the vendors of a soak', () => {
  it('bill a request by its tag', async () => {
    const { violation, bills } = await chat('plain', `tag-5- ${canary('tag-5-')}`)
    expect(violation).toBeUndefined()
    expect([...bills.keys()]).toEqual(['tag-5-'])
  })

  it('report a text that a guard should have masked', async () => {
    const { violation } = await chat('masked', `tag-5- ${canary('tag-5-')}`)
    expect(violation).toMatchObject({ invariant: 'protection', exchange: 'tag-5-' })
  })

  it('report a request with the tag of another one', async () => {
    const { violation } = await chat('plain', 'tag-5- tag-6-')
    expect(violation).toMatchObject({ invariant: 'isolation', exchange: 'tag-5-' })
  })
})
