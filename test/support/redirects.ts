/**
 * A test loads this module before the product (`NODE_OPTIONS=--import`) to redirect internet hosts to
 * local ports, as DNS and the network would. The product is not aware of it.
 *
 *   SLUICE_TEST_REDIRECTS={"api.example.com:443":12345}    host and port -> port of this machine
 */

import dns from 'node:dns/promises'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'

const redirects = JSON.parse(process.env.SLUICE_TEST_REDIRECTS ?? '{}') as Record<string, number>

/** Each host gets an address that exists nowhere (RFC 5737). */
const addresses = new Map<string, string>()
const ports = new Map<string, number>()
for (const [place, port] of Object.entries(redirects)) {
  const [host = '', asked = ''] = place.split(':')
  const address = addresses.get(host) ?? `192.0.2.${addresses.size + 1}`
  addresses.set(host, address)
  ports.set(`${address}:${asked}`, port)
}

const { resolve4, resolve6 } = dns.Resolver.prototype
dns.Resolver.prototype.resolve4 = function resolve(this: unknown, host: string, ...rest: never[]) {
  const address = addresses.get(host)
  if (address !== undefined) return Promise.resolve([{ address, ttl: 300 }])
  return Reflect.apply(resolve4, this, [host, ...rest])
} as typeof resolve4
dns.Resolver.prototype.resolve6 = function resolve(this: unknown, host: string, ...rest: never[]) {
  if (addresses.has(host)) return Promise.reject(new Error('no such record'))
  return Reflect.apply(resolve6, this, [host, ...rest])
} as typeof resolve6

const { connect } = net.Socket.prototype
net.Socket.prototype.connect = function redirected(this: net.Socket, ...args: unknown[]) {
  // Node passes its arguments on as one normalised list.
  const [first] = args
  const options = (Array.isArray(first) ? first[0] : first) as net.TcpNetConnectOpts | undefined
  const port = ports.get(`${options?.host}:${options?.port}`)
  if (options !== undefined && port !== undefined)
    Object.assign(options, { host: '127.0.0.1', port })
  return Reflect.apply(connect, this, args)
} as typeof connect

syncBuiltinESMExports()
