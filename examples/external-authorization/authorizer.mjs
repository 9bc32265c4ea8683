// An authorization service: it gets each request without its body, and allows those with the key of ann.
import { createServer } from 'node:http'

const server = createServer((request, response) => {
  const isAllowed = request.headers.authorization === 'Bearer key-of-ann'
  response.writeHead(isAllowed ? 200 : 403)
  response.end(isAllowed ? '' : 'only ann may do that\n')
})
server.listen(9191, '127.0.0.1', () => console.log('ready'))
