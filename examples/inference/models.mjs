// Two servers that stand for Pods with a model. Each answers with its name.
import { createServer } from 'node:http'

const pods = { 'small-0': '127.0.0.1', 'small-1': '127.0.0.2' }

const listen = ([name, address]) =>
  new Promise((resolve) => {
    createServer((request, response) => {
      request.resume().on('end', () => response.end(`answered by ${name}\n`))
    }).listen(9108, address, resolve)
  })

await Promise.all(Object.entries(pods).map(listen))
console.log('ready')
