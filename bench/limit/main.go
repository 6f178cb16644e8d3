// Command limit does with client-go, as it comes, what the benchmark asks of thresher: the speed there is to be had.
//
//	limit create NAMESPACE JOB.json PREFIX COUNT [CONTENT-TYPE]   creates COUNT Jobs, named PREFIX-1 and so on
//	limit delete NAMESPACE PREFIX COUNT                           deletes them and all Pods there, until both are gone
//
// KUBECONFIG names the cluster. It prints {"seconds": ..., "cpuSeconds": ...}: from the first request to the last answer.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// Requests at once, as thresher's nProcesses.
const atOnce = 32

// Between two looks whether all is gone.
const pause = 20 * time.Millisecond

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "limit:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 4 {
		return fmt.Errorf("usage: limit create NAMESPACE JOB.json PREFIX COUNT [CONTENT-TYPE] | delete NAMESPACE PREFIX COUNT")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	// No limit of its own: without this client-go stops at 5 requests a second.
	config.QPS = -1
	var work func(*kubernetes.Clientset) error
	switch args[0] {
	case "create":
		if len(args) > 5 {
			config.ContentType = args[5]
		}
		work, err = creation(args[1:])
	case "delete":
		work, err = deletion(args[1:])
	default:
		err = fmt.Errorf("%q is none of create, delete", args[0])
	}
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	// A daemon has its connection already.
	if _, err := client.Discovery().ServerVersion(); err != nil {
		return err
	}
	start, before := time.Now(), cpuSeconds()
	if err := work(client); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"seconds":    time.Since(start).Seconds(),
		"cpuSeconds": cpuSeconds() - before,
	})
}

func creation(args []string) (func(*kubernetes.Clientset) error, error) {
	if len(args) < 4 {
		return nil, fmt.Errorf("create needs NAMESPACE JOB.json PREFIX COUNT")
	}
	namespace, prefix := args[0], args[2]
	count, err := strconv.Atoi(args[3])
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(args[1])
	if err != nil {
		return nil, err
	}
	var template batchv1.Job
	if err := json.Unmarshal(text, &template); err != nil {
		return nil, fmt.Errorf("%s: %w", args[1], err)
	}
	template.Namespace = namespace
	return func(client *kubernetes.Clientset) error {
		return each(count, func(index int) error {
			job := template.DeepCopy()
			job.Name = name(prefix, index)
			_, err := client.BatchV1().Jobs(namespace).Create(context.Background(), job, metav1.CreateOptions{})
			return err
		})
	}, nil
}

func deletion(args []string) (func(*kubernetes.Clientset) error, error) {
	namespace, prefix := args[0], args[1]
	count, err := strconv.Atoi(args[2])
	if err != nil {
		return nil, err
	}
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	return func(client *kubernetes.Clientset) error {
		jobs, pods := client.BatchV1().Jobs(namespace), client.CoreV1().Pods(namespace)
		err := each(count, func(index int) error {
			return jobs.Delete(context.Background(), name(prefix, index), options)
		})
		if err != nil {
			return err
		}
		left, err := pods.List(context.Background(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		err = each(len(left.Items), func(index int) error {
			err := pods.Delete(context.Background(), left.Items[index-1].Name, metav1.DeleteOptions{})
			// The cluster's own collector may be quicker.
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
		for err == nil {
			some := metav1.ListOptions{Limit: 1}
			jobsLeft, jobsErr := jobs.List(context.Background(), some)
			podsLeft, podsErr := pods.List(context.Background(), some)
			if jobsErr != nil {
				return jobsErr
			}
			if podsErr != nil {
				return podsErr
			}
			if len(jobsLeft.Items)+len(podsLeft.Items) == 0 {
				return nil
			}
			time.Sleep(pause)
		}
		return err
	}, nil
}

func name(prefix string, index int) string {
	return fmt.Sprintf("%s-%d", prefix, index)
}

// each calls `work` with 1 to count, several at once, and returns the first error.
func each(count int, work func(index int) error) error {
	next := make(chan int)
	failed := make(chan error, atOnce)
	var group sync.WaitGroup
	for range atOnce {
		group.Go(func() {
			for index := range next {
				if err := work(index); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	for index := 1; index <= count; index++ {
		next <- index
	}
	close(next)
	group.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// cpuSeconds is what this process has used.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return seconds(usage.Utime) + seconds(usage.Stime)
}

func seconds(value syscall.Timeval) float64 {
	return float64(value.Sec) + float64(value.Usec)/1e6
}
