// An HTTP API for tickets: it adds the address of the support team to each, and lists them as lines of JSON.
import { createServer } from 'node:http'

const tickets = []
const server = createServer((request, response) => {
  if (request.method === 'GET') {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' })
    response.end(tickets.map((ticket) => `${JSON.stringify(ticket)}\n`).join(''))
    return
  }
  let body = ''
  request.on('data', (part) => (body += part))
  request.on('end', () => {
    const ticket = { id: tickets.length + 1, ...JSON.parse(body), answeredBy: 'help@example.com' }
    tickets.push(ticket)
    console.log('stored', JSON.stringify(ticket))
    response.writeHead(201, { 'content-type': 'application/json' })
    response.end(`${JSON.stringify(ticket)}\n`)
  })
})
server.listen(9181, '127.0.0.1', () => console.log('ready'))
