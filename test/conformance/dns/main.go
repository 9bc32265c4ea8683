// The DNS server of the suite's UDP test: answers every question with the address of who asks, as
// the whoami plugin of CoreDNS does. It stands for the CoreDNS image of the suite's manifests.
package main

import (
	"log"
	"net"

	"github.com/miekg/dns"
)

func main() {
	dns.HandleFunc(".", func(w dns.ResponseWriter, question *dns.Msg) {
		answer := new(dns.Msg).SetReply(question)
		host, _, _ := net.SplitHostPort(w.RemoteAddr().String())
		answer.Extra = append(answer.Extra, &dns.A{
			Hdr: dns.RR_Header{Name: question.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET},
			A:   net.ParseIP(host),
		})
		if err := w.WriteMsg(answer); err != nil {
			log.Print(err)
		}
	})
	log.Fatal((&dns.Server{Addr: ":53", Net: "udp"}).ListenAndServe())
}
