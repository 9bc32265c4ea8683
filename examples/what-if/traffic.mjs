// Serves the shop behind the gateway, and sends 30 requests through the gateway.
import { once } from 'node:events'
import { createServer, request } from 'node:http'

const day = [
  { count: 20, method: 'GET', path: '/cart' },
  { count: 5, method: 'POST', path: '/orders', team: 'blue' },
  { count: 3, method: 'GET', path: '/admin' },
  { count: 2, method: 'POST', path: '/orders', team: 'partner' },
]

function send(port, { method, path, team }) {
  const headers = { host: 'shop.example.com', ...(team && { 'x-team': team }) }
  const sent = request({ host: '127.0.0.1', port, method, path, headers })
  sent.end()
  return new Promise((resolve, reject) => {
    sent.once('error', reject)
    sent.once('response', (response) => {
      response.resume().once('end', () => resolve(response.statusCode))
    })
  })
}

/** Returns how many responses had each status. */
export async function sendTraffic(ports) {
  const shop = createServer((_, response) => response.end('hello from the shop\n'))
  await once(shop.listen(ports.shop, '127.0.0.1'), 'listening')
  const statuses = {}
  for (const { count, ...one } of day) {
    for (let n = 0; n < count; n++) {
      const status = await send(ports.gateway, one)
      statuses[status] = (statuses[status] ?? 0) + 1
    }
  }
  shop.close()
  shop.closeAllConnections()
  return statuses
}

if (process.argv[1] === import.meta.filename) {
  console.log(await sendTraffic({ gateway: 8080, shop: 9101 }))
}
