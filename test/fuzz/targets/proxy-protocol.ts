import assert from 'node:assert/strict'
import { isIP } from 'node:net'
import { readProxyHeader } from '../../../src/engines/http/sockets/proxy-protocol.ts'
import { defineTarget } from '../support/target.ts'

const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')

export default defineTarget({
  about: 'a PROXY header is answered once and for all, with an address and a port',
  samples: [
    'PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\nGET / HTTP/1.1\r\n',
    'PROXY TCP6 2001:db8::1 ::1 1 65535\r\n',
    'PROXY UNKNOWN ffff::1 ::1 1 2\r\n',
    Buffer.concat([signature, Buffer.from('2111000cc000020cc6336401dc0401bb', 'hex')]),
    Buffer.concat([signature, Buffer.from(`21210024${'20010db8'.repeat(8)}dc0401bb`, 'hex')]),
    Buffer.concat([signature, Buffer.from('20000000', 'hex')]),
  ],
  words: [
    'PROXY ',
    'TCP4 ',
    'TCP6 ',
    ' ',
    '\r\n',
    '::ffff:1.2.3.4',
    '%eth0',
    '0',
    '65536',
    signature,
  ],
  start: () => ({
    check(input) {
      let answer: ReturnType<typeof readProxyHeader> = 'incomplete'
      for (let end = 0; end <= input.length; end += input.length > 8192 ? 97 : 1) {
        const now = readProxyHeader(input.subarray(0, end))
        if (answer !== 'incomplete') assert.deepEqual(now, answer, `with ${end} bytes`)
        answer = now
      }
      if (typeof answer === 'string') return
      assert.ok(answer.length <= input.length)
      if (answer.source === undefined) return
      assert.notEqual(isIP(answer.source.address), 0)
      assert.ok(answer.source.port >= 0 && answer.source.port <= 65_535)
    },
  }),
})
