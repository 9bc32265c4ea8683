import { expect, it } from 'vitest'
import { withoutPasswords } from './nats-connection.ts'

it.each([
  ['nats://127.0.0.1:4222', 'nats://127.0.0.1:4222'],
  ['nats://ann:secret@a:4222,tls://token@b', 'nats://a:4222,tls://b'],
  ['ann:secret@a:4222', 'a:4222'],
  ['nats://ann:p@ss/word@a,b:secret@c', 'nats://a,c'],
])('shows the servers %s as %s', (servers, shown) => {
  expect(withoutPasswords(servers)).toBe(shown)
})
