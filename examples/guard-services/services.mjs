// Mock services: port 9211 finds email addresses like the analyzer of Presidio, port 9212 judges like Llama Guard.
import { createServer } from 'node:http'

/** Offsets are code points, as in Python. */
const analyze = ({ text }) =>
  Array.from(text.matchAll(/\w+@\w+\.\w+/g), ({ 0: found, index }) => {
    const start = [...text.slice(0, index)].length
    return { entity_type: 'EMAIL_ADDRESS', start, end: start + found.length, score: 1 }
  })

const judge = ({ messages }) => {
  const content = /steal/.test(messages.at(-1).content) ? 'unsafe\nS2' : 'safe'
  return { choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }] }
}

function serve(port, answer) {
  const server = createServer(async (request, response) => {
    const chunks = await Array.fromAsync(request)
    const body = JSON.parse(Buffer.concat(chunks).toString())
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(answer(body)))
  })
  return new Promise((resolve) => server.listen(port, '127.0.0.1', resolve))
}

await serve(9211, analyze)
await serve(9212, judge)
console.log('ready')
