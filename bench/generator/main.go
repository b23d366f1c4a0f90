// Package main is the one generator of the bench: HTTP/2 requests to a server, each made when another is answered or at a rate, and what they cost it.
//
// It costs a server as little as a client can, whatever the server is written in: header fields are sent once and then named by their index,
// what follows the answers of one read goes out in one write, and windows never fill.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// The argument, as JSON.
type options struct {
	// tcp or unix
	Network, Address string
	Headers          [][2]string
	// Framed gRPC messages, sent in turn from number Offset; without it the requests have no body.
	CallsFile string
	Offset    int
	// Calls in flight on each connection.
	Connections, Calls   int
	WarmSeconds, Seconds float64
	// 0: each answer makes the next request.
	PerSecond float64
	// The lengths of the right answers.
	AnswerBytes []int
	// The processes whose time is measured.
	Pids []int
}

type figures struct {
	Answered                      int
	Milliseconds, CPUMicroseconds float64
	// The number of the next message.
	Offset int
}

const (
	data, headers, reset, settings, ping, goAway, windowUpdate = 0, 1, 3, 4, 6, 7, 8

	endStream, ack, endHeaders = 1, 1, 4

	initialWindow, fullWindow, topUp = 65_535, 1<<31 - 1, 1 << 29
	// The largest message: a token of 8 KB and the headers of a request.
	maxCall = 1 << 14
)

type run struct {
	options
	calls [][]byte
	// Guards all below, and every connection.
	mutex          sync.Mutex
	sent, answered int
	connections    []*connection
}

type connection struct {
	*run
	socket net.Conn
	out    bytes.Buffer
	// The received bytes of each answer that is not complete, by stream.
	received                       map[uint32]int
	stream                         uint32
	window, notReplenished, unsent int
}

func (c *connection) frame(kind, flags byte, stream uint32, payload []byte) {
	length := len(payload)
	c.out.Write([]byte{byte(length >> 16), byte(length >> 8), byte(length), kind, flags})
	c.out.Write(binary.BigEndian.AppendUint32(nil, stream))
	c.out.Write(payload)
}

// RFC 7541: the first block puts each field into the table of the connection, and a later one names it there. No value has 16,384 bytes.
func headerBlock(fields [][2]string, isFirst bool) (block []byte) {
	for index, field := range fields {
		if !isFirst {
			block = append(block, 0x80|byte(62+len(fields)-1-index))
			continue
		}
		block = append(block, 0x40)
		for _, text := range field {
			if length := len(text); length < 0x7f {
				block = append(block, byte(length))
			} else {
				block = append(block, 0x7f, byte(length-0x7f)|0x80, byte((length-0x7f)>>7))
			}
			block = append(block, text...)
		}
	}
	return block
}

func (r *run) connect() *connection {
	socket, err := net.Dial(r.Network, r.Address)
	if err != nil {
		log.Fatal(err)
	}
	c := &connection{run: r, socket: socket, received: map[uint32]int{}, stream: 1, window: initialWindow}
	c.out.WriteString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	// No push, and a full window for each answer.
	c.frame(settings, 0, 0, []byte{0, 2, 0, 0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff})
	c.frame(windowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, fullWindow-initialWindow))
	return c
}

// Writes these requests, and those that the window of the server did not allow before.
func (c *connection) request(count int) {
	for c.unsent += count; c.unsent > 0 && c.window >= maxCall; c.unsent-- {
		block := headerBlock(c.Headers, c.stream == 1)
		if len(c.calls) == 0 {
			c.frame(headers, endHeaders|endStream, c.stream, block)
		} else {
			call := c.calls[(c.Offset+c.sent)%len(c.calls)]
			c.frame(headers, endHeaders, c.stream, block)
			c.frame(data, endStream, c.stream, call)
			c.window -= len(call)
		}
		c.received[c.stream] = 0
		c.sent++
		c.stream += 2
	}
	if _, err := c.socket.Write(c.out.Bytes()); err != nil {
		log.Fatal(err)
	}
	c.out.Reset()
}

// Handles one frame, and says whether an answer is complete.
func (c *connection) take(kind, flags byte, stream uint32, payload []byte) (bool, error) {
	_, isOpen := c.received[stream]
	switch {
	case kind == data:
		c.received[stream] += len(payload)
		if c.notReplenished += len(payload); c.notReplenished > topUp {
			c.frame(windowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, uint32(c.notReplenished)))
			c.notReplenished = 0
		}
	case kind == settings && flags&ack == 0:
		c.frame(settings, ack, 0, nil)
	case kind == ping && flags&ack == 0:
		c.frame(ping, ack, 0, payload)
	case kind == windowUpdate && stream == 0:
		c.window += int(binary.BigEndian.Uint32(payload))
	case kind == goAway, kind == reset && isOpen:
		return false, errors.New("the server ended a call")
	}
	if flags&endStream == 0 || kind > headers {
		return false, nil
	}
	length := c.received[stream]
	delete(c.received, stream)
	if !slices.Contains(c.AnswerBytes, length) {
		return false, fmt.Errorf("a wrong answer of %d bytes", length)
	}
	return true, nil
}

func (c *connection) read() {
	buffer, filled := make([]byte, 1<<18), 0
	for {
		count, err := c.socket.Read(buffer[filled:])
		if err != nil {
			log.Fatal(err)
		}
		filled += count
		c.mutex.Lock()
		at, ended := 0, 0
		for filled-at >= 9 {
			head := buffer[at : at+9]
			end := at + 9 + (int(head[0])<<16 | int(head[1])<<8 | int(head[2]))
			if filled < end {
				break
			}
			isAnswer, err := c.take(head[3], head[4], binary.BigEndian.Uint32(head[5:]), buffer[at+9:end])
			if err != nil {
				log.Fatal(err)
			}
			if isAnswer {
				ended++
			}
			at = end
		}
		filled = copy(buffer, buffer[at:filled])
		c.answered += ended
		if c.PerSecond > 0 {
			ended = 0
		}
		c.request(ended)
		c.mutex.Unlock()
	}
}

func (r *run) keepRate() {
	for started, made := time.Now(), 0; ; time.Sleep(5 * time.Millisecond) {
		r.mutex.Lock()
		for ; float64(made) < time.Since(started).Seconds()*r.PerSecond; made++ {
			r.connections[made%len(r.connections)].request(1)
		}
		r.mutex.Unlock()
	}
}

func (r *run) now() figures {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	at := figures{r.answered, float64(time.Now().UnixMicro()) / 1000, 0, r.Offset + r.sent}
	for _, pid := range r.Pids {
		// The clock of another process (clock_getcpuclockid): user and system time in nanoseconds, where /proc has ticks of 10 ms.
		var spent syscall.Timespec
		clock := uintptr(^pid<<3 | 2)
		if _, _, err := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&spent)), 0); err != 0 {
			log.Fatal(err)
		}
		at.CPUMicroseconds += float64(spent.Nano()) / 1000
	}
	return at
}

func main() {
	r := &run{}
	if err := json.Unmarshal([]byte(os.Args[1]), &r.options); err != nil {
		log.Fatal(err)
	}
	if r.CallsFile != "" {
		file, err := os.ReadFile(r.CallsFile)
		if err != nil {
			log.Fatal(err)
		}
		for at := 0; at < len(file); {
			end := at + 5 + int(binary.BigEndian.Uint32(file[at+1:]))
			r.calls = append(r.calls, file[at:end])
			at = end
		}
	}
	calls := r.Calls
	if r.PerSecond > 0 {
		calls = 0
	}
	for range r.Connections {
		c := r.connect()
		r.connections = append(r.connections, c)
		c.request(calls)
	}
	for _, c := range r.connections {
		go c.read()
	}
	if r.PerSecond > 0 {
		go r.keepRate()
	}
	time.Sleep(time.Duration(r.WarmSeconds * float64(time.Second)))
	from := r.now()
	time.Sleep(time.Duration(r.Seconds * float64(time.Second)))
	to := r.now()
	to.Answered -= from.Answered
	to.Milliseconds -= from.Milliseconds
	to.CPUMicroseconds -= from.CPUMicroseconds
	if err := json.NewEncoder(os.Stdout).Encode(to); err != nil {
		log.Fatal(err)
	}
}
