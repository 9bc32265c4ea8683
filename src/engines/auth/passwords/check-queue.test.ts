import { describe, expect, it } from 'vitest'
import { CheckQueue, type PasswordClient, type WaitingCheck } from './check-queue.ts'

const client = (address: string, user: string, isGone = false): PasswordClient => ({
  address,
  user,
  isGone: () => isGone,
})

function add(queue: CheckQueue, digest: string, one: PasswordClient): void {
  const rest = { password: '', hash: '', since: 0, resolve: () => {}, reject: () => {} }
  queue.add({ ...rest, digest, clients: [one] }, one)
}

function drain(queue: CheckQueue): string[] {
  const taken: string[] = []
  for (let check = queue.take(); check !== undefined; check = queue.take()) taken.push(check.digest)
  return taken
}

describe('CheckQueue', () => {
  it('takes checks by turns of addresses, and of users within an address', () => {
    const queue = new CheckQueue()
    for (const digest of ['a1', 'a2', 'a3']) add(queue, digest, client('10.0.0.1', 'guess'))
    add(queue, 'ann', client('10.0.0.1', 'ann'))
    add(queue, 'bob', client('10.0.0.2', 'bob'))
    expect(queue.sizeOf('10.0.0.1')).toBe(4)
    expect(drain(queue)).toEqual(['a1', 'bob', 'ann', 'a2', 'a3'])
    expect(queue.size).toBe(0)
  })

  it('removes the checks that match, and keeps the order of others', () => {
    const queue = new CheckQueue()
    add(queue, 'gone', client('10.0.0.1', 'x', true))
    add(queue, 'one', client('10.0.0.1', 'x'))
    add(queue, 'two', client('10.0.0.1', 'x'))
    const isGone = ({ clients }: WaitingCheck) => clients.every((one) => one.isGone())
    expect(queue.remove(isGone).map(({ digest }) => digest)).toEqual(['gone'])
    expect(queue.size).toBe(2)
    expect(drain(queue)).toEqual(['one', 'two'])
  })
})
